#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of a build, twice to the same bytes, and uses them: the symbols that they need, a recording from each, diagnosed,
and another release where build/chroots/<release> is one.

Usage: check_packages.py BUILD OUT"""
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv

import debian_use
import used
from used import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEWEST = (2, 28)
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def make(build, out):
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
        for name, major, minor in re.findall(r" (\S+)@GLIBC_(\d+)\.(\d+)", run("nm", "-D", "--undefined-only", path)):
            if (int(major), int(minor)) > NEWEST:
                sys.exit(f"{path}: {name} needs glibc {major}.{minor}")
    if checked < 6:
        sys.exit(f"{folder}: only {checked} programs and libraries")


def check_release(chroot, prefix):
    """A system of another release, with nothing of this one but the tarball."""
    inside = chroot / "opt" / "lockstep"
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(prefix, inside, symlinks=True)
    shutil.rmtree(chroot / "tmp" / "hang", ignore_errors=True)
    programs = pathlib.Path("/opt/lockstep/bin")
    used.check_diagnosed_hang(("chroot", chroot), programs, "/tmp/hang")
    missing = subprocess.run(["chroot", str(chroot), str(programs / "lockstep"), "diagnose", "/absent"], capture_output=True, text=True)
    if missing.returncode != 2 or "cannot open" not in missing.stderr:
        sys.exit(f"{chroot}: {missing}")
    shutil.rmtree(inside)
    shutil.rmtree(chroot / "tmp" / "hang")


def check_wheel(wheel, scratch):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LOCKSTEP_DIAGNOSE_LIBRARY")}
    if not re.search(r"-manylinux_2_(1\d|2[0-8])_", wheel.name):
        sys.exit(f"{wheel.name}: its tag is newer than glibc {NEWEST}")
    venv.create(scratch / "venv", with_pip=True)
    python = scratch / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel, env=environment)
    used.check_diagnosis(run(scratch / "venv" / "bin" / "lockstep", "diagnose", scratch / "hang", code=1, env=environment))
    asked = "import lockstep, sys; print(lockstep.open(sys.argv[1]).diagnose().verdict.statement)"
    used.check_diagnosis(run(python, "-c", asked, scratch / "hang", env=environment, cwd=scratch))


def main():
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    make(build, out)
    scratch = out / "use"
    scratch.mkdir()
    with tarfile.open(next(out.glob("*.tar.gz"))) as tar:
        tar.extractall(scratch)
    prefix = next(scratch.glob("lockstep-*"))
    check_needs(prefix)
    used.check_diagnosed_hang((), prefix / "bin", scratch / "hang")
    used.check_recording((), prefix / "bin", prefix / "lib", scratch / "trace.db")
    check_wheel(next(out.glob("*.whl")), scratch)

    chroots = sorted(path for path in (ROOT / "build" / "chroots").glob("*") if path.is_dir())
    if not chroots or os.geteuid() != 0:
        print("not run on another release: needs root and build/chroots/<release>, by debootstrap --variant=minbase")
        chroots = []
    for chroot in chroots:
        check_release(chroot, prefix)
    print(debian_use.check(out, scratch, chroots))
    print(f"used here, and on {', '.join(path.name for path in chroots) or 'no other release'}")
    shutil.rmtree(scratch)


main()
