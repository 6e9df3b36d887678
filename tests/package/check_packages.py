#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of a build, or installs those that were made in one way and uses them there until a recording is diagnosed.

Usage: check_packages.py WAY BUILD OUT. WAY is make, which fills OUT, twice to the same bytes; tarball, wheel or deb, on this machine; lintian; a
release in build/chroots, where all three are installed; or source, which runs `make install` in such a system. BUILD may be the cross build,
whose packages QEMU runs. Ends with 77 and the reason where this machine lacks what the way needs.
"""
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys

import debian_use
import emulated_use
import release_use
import used
from used import ROOT, run

NEWEST = (2, 28)
NEWEST_IN_JOBS = (2, 17)  # of the capture libraries, in images of any age
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
PARTS = ("share/man/man1/lockstep.1", "share/bash-completion/completions/lockstep", "share/zsh/site-functions/_lockstep",
         "share/fish/vendor_completions.d/lockstep.fish", "share/doc/lockstep/LICENSE", "share/doc/lockstep/NOTICE", "share/doc/lockstep/SECURITY.md",
         "share/doc/lockstep/THIRD-PARTY.md", "include/lockstep/lockstep.h", "share/lockstep/python/lockstep/py.typed")


def make(build, out, _):
    """The packages, in `out`; made at the same time by another user's habits, the bytes must be the same."""
    command = [str(ROOT / "tools" / "package"), str(build)]
    again = out.with_name(out.name + "-again")
    temporary = out.with_name(out.name + "-tmp")
    temporary.mkdir(exist_ok=True)
    second = subprocess.Popen([*command, str(again)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, umask=0o077,
                              env={**os.environ, "TMPDIR": str(temporary), "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    print(run(*command, out))
    told = second.communicate()[0]
    if second.returncode != 0:
        sys.exit(f"made again: {told}")
    names = sorted(path.name for path in out.iterdir())
    if len(names) < 2 or names != sorted(path.name for path in again.iterdir()):
        sys.exit(f"{out} has {names}, {again} has others")
    if different := [name for name in names if not filecmp.cmp(out / name, again / name, shallow=False)]:
        sys.exit(f"made twice of one build, these differ: {different}")
    shutil.rmtree(again)
    shutil.rmtree(temporary)


def check_needs(folder):
    checked = 0
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        checked += 1
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", path)))
        if needed - GLIBC:
            sys.exit(f"{path}: needs {needed - GLIBC}")
        in_jobs = path.suffix == ".so"
        for name, major, minor in re.findall(r" (\S+)@GLIBC_(\d+)\.(\d+)", run("nm", "-D", "--undefined-only", path)):
            if (int(major), int(minor)) > (NEWEST_IN_JOBS if in_jobs else NEWEST):
                sys.exit(f"{path}: {name} needs glibc {major}.{minor}")
    if checked < 9:
        sys.exit(f"{folder}: only {checked} programs and libraries")


def check_parts(prefix, emulator):
    if absent := [name for name in PARTS if not (prefix / name).exists()]:
        sys.exit(f"not in the tarball: {absent}")
    licences = {path.name for path in (prefix / "share/doc/lockstep/licences").iterdir()}
    if missing := {"libsqlite3-dev.txt", "libarchive-dev.txt", "libsimdjson-dev.txt", "g++.txt"} - licences:
        sys.exit(f"no licences: {missing} among {licences}")
    version = run(*emulator, prefix / "bin" / "lockstep", "version")
    if (ROOT / ".git").exists() and not re.match(r"lockstep \S+ \([0-9a-f]{12}\+?\)", version):
        sys.exit(f"`lockstep version` names no commit: {version}")


def tarball(build, out, scratch):
    used.install("tarball, here", "tar", "-xzf", next(out.glob("*.tar.gz")), "-C", scratch)
    prefix = next(scratch.glob("lockstep-*"))
    check_needs(prefix)
    emulator = emulated_use.bare_emulator(scratch) if build == emulated_use.BUILD else ()
    check_parts(prefix, emulator)
    used.check_pages(prefix / "share/doc/lockstep")
    used.check((), prefix / "bin", prefix / "lib", scratch, scratch, emulator)


def wheel(build, out, scratch):
    if not re.search(r"-manylinux_2_(1\d|2[0-8])_", (file := next(out.glob("*.whl"))).name):
        sys.exit(f"{file.name}: its tag is newer than glibc {NEWEST}")
    if build == emulated_use.BUILD:
        emulated_use.check_wheel(file, scratch)
    else:
        release_use.check_wheel("here", (), sys.executable, file, scratch, scratch)


def deb(build, out, scratch):
    if build == emulated_use.BUILD:
        emulated_use.check_deb(out, scratch)
    else:
        debian_use.check_here(out, scratch)


def lintian(build, out, scratch):
    debian_use.check_lintian(out)


def source(build, out, scratch):
    release_use.check_source(scratch)


def main():
    way, build, out = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    if build == emulated_use.BUILD:
        emulated_use.check_ready()
    scratch = out.with_name(f"{out.name}-use-{way}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    ways = {"make": make, "tarball": tarball, "wheel": wheel, "deb": deb, "lintian": lintian, "source": source}
    if way in ways:
        ways[way](build, out, scratch)
    else:
        release_use.check_release(way, out)
    shutil.rmtree(scratch)


main()
