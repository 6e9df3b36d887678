# SPDX-License-Identifier: Apache-2.0
"""Uses the packages of aarch64, which a cross build makes: under QEMU, with glibc of the oldest release of Debian that is still to be had, and nothing else."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import debian_use
import release_use
import used
from used import ROOT, run

BUILD = ROOT / "build" / "install-aarch64"
RELEASE = ROOT / "build" / "aarch64-bullseye"
GLIBC = (RELEASE, pathlib.Path("lib/ld-linux-aarch64.so.1"), RELEASE / "lib" / "aarch64-linux-gnu")


def emulator_in(root):
    return ("qemu-aarch64", "-L", root)


def python():
    return (*emulator_in(RELEASE), RELEASE / "usr/bin/python3", "-B")


def bare_emulator(scratch):
    root = scratch / "bare"
    debian_use.bare_root(root, *GLIBC)
    return emulator_in(root)


def check_ready():
    """Skips what is not of this commit, or cannot run here."""
    program = BUILD / "portable" / "bin" / "lockstep"
    if not program.exists():
        used.skip("build/install-aarch64 has no packages' programs; `tools/test_packages JOBS aarch64` builds them with Debian's cross compiler")
    if shutil.which("qemu-aarch64") is None or not RELEASE.exists():
        used.skip("qemu-aarch64 or build/aarch64-bullseye is absent; `tools/setup --aarch64` brings both")
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    if commit not in (told := run(*emulator_in(RELEASE), program, "version")):
        used.skip(f"build/install-aarch64 is of another commit than {commit}; `tools/test_packages JOBS aarch64` builds it anew: {told}")


def check_wheel(wheel, scratch):
    """pip takes the file for a machine of that tag; the programs, the module and the notebook run."""
    venv, site = scratch / "venv", scratch / "site"
    run(sys.executable, "-m", "venv", venv)
    tag = re.search(r"(manylinux_\d+_\d+_aarch64)\.whl$", wheel.name)[1]
    run(venv / "bin/python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--only-binary=:all:", "--platform", tag,
        "--target", site, wheel)
    used.check_pages(site / "share/doc/lockstep")
    native = site / "lockstep" / "native"
    emulator = bare_emulator(scratch)
    used.check((), native / "bin", native / "lib", scratch, scratch, emulator)
    run(*emulator, native / "bin/lockstep", "merge", "-o", scratch / "trace.db", scratch / "hang")
    notebook, cells = release_use.NOTEBOOK
    used.check_diagnosis(run(*python(), cells, notebook, scratch, env={**os.environ, "PYTHONPATH": str(site)}))


def check_deb(out, scratch):
    packages = debian_use.packages_of(out)
    if shutil.which("dpkg") is None:
        used.skip("dpkg is absent")
    root = scratch / "bare"
    before = debian_use.install_bare(packages, root, GLIBC)
    used.check((), root / "usr/bin", root / "usr/lib", scratch, scratch, emulator_in(root))
    debian_use.check_bare_module(packages, root, python(), scratch / "hang")
    debian_use.remove_bare(root, before)
