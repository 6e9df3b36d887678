# SPDX-License-Identifier: Apache-2.0
"""Every way of installing, in a whole system of another release that has nothing of this machine."""
import os
import pathlib
import shutil
import subprocess

import debian_use
import used
from used import ROOT, run

CHROOTS = ROOT / "build" / "chroots"
NOTEBOOK = (ROOT / "examples/notebook/lockstep.ipynb", ROOT / "python/tests/notebook_cells.py")


def find_chroot(release):
    chroot = CHROOTS / release
    if not (chroot / "usr/bin/dpkg").exists():
        used.skip(f"build/chroots/{release} is absent; as root, `tools/setup --package-test` makes it where the registry has that release")
    if os.geteuid() != 0:
        used.skip("chroot needs root")
    return chroot


def check_wheel(where, inside, python, wheel, folder, seen):
    """pip installs the file without its network into a new environment; there the console script, the module and the notebook run."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LOCKSTEP_DIAGNOSE_LIBRARY", "PIP_FIND_LINKS")}
    how = {"env": environment}
    place = folder / "venv"
    run(*inside, python, "-m", "venv", place, **how)
    shutil.copy(wheel, seen / wheel.name)
    used.install(f"wheel, {where}", *inside, place / "bin/python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", folder / wheel.name, **how)
    used.check_pages(seen / "venv/share/doc/lockstep")
    native = next((seen / "venv/lib").glob("python3*/site-packages/lockstep/native")).relative_to(seen)
    used.check(inside, folder / native / "bin", folder / native / "lib", folder, seen)
    used.check_diagnosis(run(*inside, place / "bin/lockstep", "diagnose", folder / "hang", code=1, **how))
    run(*inside, place / "bin/lockstep", "merge", "-o", folder / "trace.db", folder / "hang", **how)
    for path in NOTEBOOK:
        shutil.copy(path, seen / path.name)
    used.check_diagnosis(run(*inside, place / "bin/python", folder / NOTEBOOK[1].name, folder / NOTEBOOK[0].name, folder, **how))


def check_release(release, out):
    chroot = find_chroot(release)
    inside = debian_use.inside_of(chroot, ("/bin/true",)) or used.skip(f"neither /proc nor chroot is allowed for {chroot}")
    before = debian_use.files_of(chroot)
    work = chroot / "tmp" / "lockstep-package"
    folder = pathlib.Path("/tmp/lockstep-package")
    for way in ("tarball", "wheel"):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        if way == "tarball":
            shutil.copy(next(out.glob("*.tar.gz")), work / "lockstep.tar.gz")
            used.install(f"tarball, {release}", *inside, "tar", "-xzf", folder / "lockstep.tar.gz", "-C", folder, "--strip-components=1")
            used.check(inside, folder / "bin", folder / "lib", folder, work)
        else:
            check_wheel(release, inside, "/usr/bin/python3", next(out.glob("*.whl")), folder, work)
        shutil.rmtree(work)
    debian_use.check_system(chroot, inside, out)
    debian_use.check_nothing_left(chroot, before)


def check_source(scratch):
    """`make install` as a newcomer runs it as root: set-up brings what is missing."""
    if os.environ.get("LOCKSTEP_TEST_SOURCE") is None:
        used.skip("compiles everything; LOCKSTEP_TEST_SOURCE=bookworm asks for it")
    chroot = find_chroot(os.environ["LOCKSTEP_TEST_SOURCE"])
    root = scratch / "root"
    run("cp", "-a", chroot, root)
    source = root / "root" / "lockstep"
    source.mkdir()
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout
    packed = subprocess.run(["tar", "-C", str(ROOT), "--null", "-T", "-", "-cf", "-"], check=True, input=files, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-C", str(source), "-xf", "-"], check=True, input=packed)
    inside = debian_use.inside_of(root, ("/bin/true",))
    run(*inside, "sh", "-c", "apt-get update && apt-get install -y --no-install-recommends make")
    used.install("make install", *inside, "make", "-C", "/root/lockstep", "install", "PREFIX=/opt/lockstep")
    used.check(inside, pathlib.Path("/opt/lockstep/bin"), pathlib.Path("/opt/lockstep/lib"), pathlib.Path("/tmp"), root / "tmp")
