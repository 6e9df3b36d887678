# SPDX-License-Identifier: Apache-2.0
"""The .deb packages of an installed tree: lockstep, lockstep-dev and python3-lockstep, by CPack, as packaging/debian/ describes them."""
import gzip
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

import source_tree

FOLDER = source_tree.ROOT / "packaging" / "debian"
MAINTAINER = re.search(r'MAINTAINER "(.+)"', (FOLDER / "cpack.cmake").read_text())[1]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Where a file of the tree goes, first match: (what it is called in the tree, package, what it is called below /usr).
PLACES = (
    (r"(include/.*)", "lockstep-dev", r"\1"),
    (r"(lib/cmake/.*|lib/liblockstep-diagnose\.so)", "lockstep-dev", r"\1"),
    (r"share/lockstep/python/(.*)", "python3-lockstep", r"lib/python3/dist-packages/\1"),
    (r"share/zsh/site-functions/(.*)", "lockstep", r"share/zsh/vendor-completions/\1"),
    (r"share/doc/lockstep/LICENSE", "", ""),  # Debian has that licence once for all
    (r"(bin|lib|share)/(.*)", "lockstep", r"\1/\2"),
)
PACKED = ("share/man/man1/lockstep.1",)


def place(name):
    for pattern, package, to in PLACES:
        if found := re.fullmatch(pattern, name):
            return package, found.expand(to)
    raise ValueError(f"{name} has no package in tools/debian_packages.py")


def write_packed(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(data, 9, mtime=0))


def fill(tree, roots, version, when):
    """Spreads the tree over the packages' roots."""
    for path in sorted(path for path in tree.rglob("*") if path.is_symlink() or path.is_file()):
        package, name = place(str(path.relative_to(tree)))
        if not package:
            continue
        to = roots[package] / "usr" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if name in PACKED:
            write_packed(to, path.read_bytes())
        else:
            shutil.copy2(path, to, follow_symlinks=False)
    for package, root in roots.items():
        doc = root / "usr" / "share" / "doc" / package
        doc.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / "copyright", doc / "copyright")
        date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(when))
        write_packed(doc / "changelog", f"{package} ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md of lockstep lists the changes.\n\n"
                     f" -- {MAINTAINER}  {date}\n".encode())
        overrides = FOLDER / f"{package}.lintian-overrides"
        if overrides.exists():
            (root / "usr" / "share" / "lintian" / "overrides").mkdir(parents=True)
            shutil.copy(overrides, root / "usr" / "share" / "lintian" / "overrides" / package)


def set_modes(root, when):
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            is_run = path.parent == root / "usr" / "bin" or ("examples" in path.parts and os.access(path, os.X_OK))
            path.chmod(0o755 if path.is_dir() or is_run else 0o644)
        os.utime(path, (when, when), follow_symlinks=False)


def with_size(control, kilobytes, when):
    """A control.tar.gz with another Installed-Size."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(control)) as read, tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as written:
        for entry in read:
            data = read.extractfile(entry).read() if entry.isreg() else b""
            if pathlib.PurePath(entry.name).name == "control":
                data = re.sub(rb"(?m)^Installed-Size: .*$", b"Installed-Size: %d" % kilobytes, data)
            entry.size = len(data)
            written.addfile(entry, io.BytesIO(data))
    return gzip.compress(made.getvalue(), 9, mtime=when)


def correct_size(package, root, when):
    """CPack takes a link for as large as what it leads to, which makes the recorders count three times."""
    kilobytes = sum(-(-path.lstat().st_size // 1024) for path in root.rglob("*") if path.is_symlink() or path.is_file())
    archive = package.read_bytes()
    made, at = archive[:8], 8
    while at < len(archive):
        head, size = archive[at:at + 48], int(archive[at + 48:at + 58])
        content = archive[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if head.startswith(b"control.tar.gz"):
            content = with_size(content, kilobytes, when)
        made += head + b"%-10d`\n" % len(content) + content + b"\n" * (len(content) % 2)
    package.write_bytes(made)


def make(tree, out, version, machine, when):
    """The packages' paths. `tree` is what `make install` leaves, with the portable programs."""
    with tempfile.TemporaryDirectory() as scratch:
        roots = {package: pathlib.Path(scratch) / package for _, package, _ in PLACES if package}
        fill(tree, roots, version, when)
        for package, root in roots.items():
            set_modes(root, when)
            named = {"package": package, "version": version, "architecture": ARCHITECTURES[machine], "root": root, "out": f"{scratch}/made"}
            config = root.with_suffix(".cmake")
            config.write_text("".join(f"set({name} [[{value}]])\n" for name, value in named.items()) + f"include([[{FOLDER}/cpack.cmake]])\n")
            done = subprocess.run(["cpack", "--config", str(config)], capture_output=True, text=True, umask=0o022,
                                  env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})
            if done.returncode != 0:
                raise OSError(f"cpack of {package} failed:\n{done.stdout}{done.stderr}")
            correct_size(next(pathlib.Path(scratch, "made").glob(f"{package}_*.deb")), root, when)
        return [pathlib.Path(shutil.move(path, out / path.name)) for path in sorted(pathlib.Path(scratch, "made").glob("*.deb"))]
