# SPDX-License-Identifier: Apache-2.0
"""The .deb packages of an installed tree: lockstep, lockstep-dev and python3-lockstep, as packaging/debian/ describes them."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import source_tree

FOLDER = source_tree.ROOT / "packaging" / "debian"
MAINTAINER = "Lockstep authors <maintainers@lockstep.invalid>"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Where a file of the tree goes, first match: (what it is called in the tree, package, what it is called below /usr).
PLACES = (
    (r"(include/.*)", "lockstep-dev", r"\1"),
    (r"(lib/cmake/.*|lib/liblockstep-diagnose\.so)", "lockstep-dev", r"\1"),
    (r"share/lockstep/python/(.*)", "python3-lockstep", r"lib/python3/dist-packages/\1"),
    (r"share/zsh/site-functions/(.*)", "lockstep", r"share/zsh/vendor-completions/\1"),
    (r"share/doc/lockstep/LICENSE", "", ""),  # Debian has that licence once for all
    (r"share/doc/lockstep/CHANGELOG\.md", "lockstep", "share/doc/lockstep/CHANGELOG.md"),
    (r"(bin|lib|share)/(.*)", "lockstep", r"\1/\2"),
)
PACKED = ("share/doc/lockstep/CHANGELOG.md", "share/man/man1/lockstep.1")


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


def write_control(root, package, values):
    folder = root / "DEBIAN"
    folder.mkdir()
    stanza = next(text for text in (FOLDER / "control").read_text().split("\n\n") if text.startswith(f"Package: {package}\n"))
    values = {**values, "SIZE": str(-(-sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) // 1024))}
    (folder / "control").write_text(re.sub(r"@(\w+)@", lambda name: values[name[1]], stanza).rstrip() + "\n")
    for script in ("postinst", "prerm", "shlibs", "triggers"):
        if (FOLDER / f"{package}.{script}").exists():
            shutil.copy(FOLDER / f"{package}.{script}", folder / script)
    sums = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink() and folder not in path.parents)
    lines = subprocess.run(["md5sum", *(path.relative_to(root) for path in sums)], cwd=root, check=True, capture_output=True, text=True)
    (folder / "md5sums").write_text(lines.stdout)


def set_modes(root, when):
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            scripts = path.parent.name == "DEBIAN" and path.name in ("postinst", "prerm")
            is_program = path.parent == root / "usr" / "bin"
            path.chmod(0o755 if path.is_dir() or scripts or is_program else 0o644)
        os.utime(path, (when, when), follow_symlinks=False)


def make(tree, out, version, machine, when):
    """The packages' paths. `tree` is what `make install` leaves, with the portable programs."""
    values = {"VERSION": version, "ARCHITECTURE": ARCHITECTURES[machine], "MAINTAINER": MAINTAINER}
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        roots = {package: pathlib.Path(scratch) / package for package in re.findall(r"^Package: (.+)$", (FOLDER / "control").read_text(), re.MULTILINE)}
        fill(tree, roots, values["VERSION"], when)
        for package, root in roots.items():
            write_control(root, package, values)
            set_modes(root, when)
            architecture = re.search(r"^Architecture: (.+)$", (root / "DEBIAN" / "control").read_text(), re.MULTILINE)[1]
            result = out / f"{package}_{values['VERSION']}_{architecture}.deb"
            # One thread: how a stream is cut among threads may depend on the machine's memory.
            subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(result)], check=True, capture_output=True,
                           env={**os.environ, "SOURCE_DATE_EPOCH": str(when), "DPKG_DEB_THREADS_MAX": "1"})
            results.append(result)
    return results
