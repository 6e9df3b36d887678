#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tarball and the wheel of a build and uses them: the symbols that they need, a recording from each, diagnosed, and another
release where build/chroots/<release> is one.

Usage: check_packages.py BUILD OUT"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEWEST = (2, 28)
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
HANG = ["--ranks", "4", "--steps", "20", "--fault", "never-joined", "--seed", "3", "-o"]


def run(*command, code=0, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode != code:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


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


def check_diagnosis(text):
    if "never called operation" not in text:
        sys.exit(f"no diagnosis of the hang:\n{text}")


def check_recording(prefix, scratch):
    """What NCCL would tell the plugin, recorded under `lockstep trace` and read again."""
    db = scratch / "trace.db"
    run(prefix / "bin" / "lockstep", "trace", "-o", db, prefix / "bin" / "lockstep-nccl-host", "--script", "allreduce", "--events", "50",
        "--plugin", prefix / "lib" / "liblockstep-nccl.so")
    if "AllReduce" not in run(prefix / "bin" / "lockstep", "summary", db):
        sys.exit("the recording has no AllReduce")


def check_release(chroot, prefix):
    """A system of another release, with nothing of this one but the tarball."""
    inside = chroot / "opt" / "lockstep"
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(prefix, inside, symlinks=True)
    shutil.rmtree(chroot / "tmp" / "hang", ignore_errors=True)
    run("chroot", chroot, "/opt/lockstep/bin/lockstep-sim-job", *HANG, "/tmp/hang")
    check_diagnosis(run("chroot", chroot, "/opt/lockstep/bin/lockstep", "diagnose", "/tmp/hang", code=1))
    missing = subprocess.run(["chroot", str(chroot), "/opt/lockstep/bin/lockstep", "diagnose", "/absent"], capture_output=True, text=True)
    if missing.returncode != 2 or "cannot open" not in missing.stderr:
        sys.exit(f"{chroot}: {missing}")
    shutil.rmtree(inside)


def main():
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LOCKSTEP_DIAGNOSE_LIBRARY")}
    print(run(ROOT / "tools" / "package", build, out))
    scratch = out / "use"
    scratch.mkdir()
    with tarfile.open(next(out.glob("*.tar.gz"))) as tar:
        tar.extractall(scratch)
    prefix = next(scratch.glob("lockstep-*"))
    check_needs(prefix)
    run(prefix / "bin" / "lockstep-sim-job", *HANG, scratch / "hang")
    check_diagnosis(run(prefix / "bin" / "lockstep", "diagnose", scratch / "hang", code=1))
    check_recording(prefix, scratch)

    wheel = next(out.glob("*.whl"))
    if not re.search(r"-manylinux_2_(1\d|2[0-8])_", wheel.name):
        sys.exit(f"{wheel.name}: its tag is newer than glibc {NEWEST}")
    venv.create(scratch / "venv", with_pip=True)
    python = scratch / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel, env=environment)
    check_diagnosis(run(scratch / "venv" / "bin" / "lockstep", "diagnose", scratch / "hang", code=1, env=environment))
    asked = "import lockstep, sys; print(lockstep.open(sys.argv[1]).diagnose().verdict.statement)"
    check_diagnosis(run(python, "-c", asked, scratch / "hang", env=environment, cwd=scratch))

    chroots = sorted(path for path in (ROOT / "build" / "chroots").glob("*") if path.is_dir())
    if not chroots or os.geteuid() != 0:
        print("not run on another release: needs root and build/chroots/<release>, by debootstrap --variant=minbase")
        chroots = []
    for chroot in chroots:
        check_release(chroot, prefix)
    print(f"used here, and on {', '.join(path.name for path in chroots) or 'no other release'}")
    shutil.rmtree(scratch)


main()
