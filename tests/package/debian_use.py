# SPDX-License-Identifier: Apache-2.0
"""Installs the .deb packages, uses them and removes them: in a root that has glibc and nothing else, and in a whole system."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import used

GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0")


def files_of(root):
    """Everything in the root but what belongs to the kernel, and to dpkg's own and others' logs and caches."""
    ignored = re.compile(r"(dev|proc|sys|tmp|var/lib/dpkg|var/log|var/cache|etc/ld\.so\.cache)(/|$)")
    return {name for path in root.rglob("*") if not ignored.match(name := str(path.relative_to(root)))}


def glibc_here():
    """The root of this system, its loader and the folder of its C library."""
    program = used.run("readelf", "-lW", "/proc/self/exe")
    loader = pathlib.Path(re.search(r"interpreter: (.+?)\]", program)[1])
    library = re.search(r"libc\.so\.6 => (\S+)", used.run(loader, "--list", sys.executable))[1]
    return pathlib.Path("/"), loader.relative_to("/"), pathlib.Path(library).parent


def bare_root(root, system, loader, folder):
    """What a program finds in the smallest of containers: the loader and the C library of a system."""
    (root / loader).parent.mkdir(parents=True)
    shutil.copy(system / loader, root / loader)
    libraries = root / "lib"
    libraries.mkdir(exist_ok=True)
    for name in GLIBC:
        shutil.copy(folder / name, libraries / name)
    (root / "tmp").mkdir()
    (root / "proc").mkdir()
    database = root / "var" / "lib" / "dpkg"
    (database / "updates").mkdir(parents=True)
    (database / "info").mkdir()
    (database / "status").touch()
    (database / "available").touch()


def inside_of(root, probe):
    """The command that runs another one in the root, beside the /proc that every container has; None where neither is allowed. `probe` is
    the command that is tried."""
    (root / "proc").mkdir(exist_ok=True)
    for mapped in ((), ("--map-root-user",)):
        command = ("unshare", "--mount", *mapped, "sh", "-c", 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"', root)
        if subprocess.run([*map(str, command), *probe], capture_output=True).returncode == 0:
            return command
    return None


def check_programs(inside, root):
    work = root / "tmp" / "lockstep-use"
    work.mkdir()
    used.check(inside, pathlib.Path("/usr/bin"), pathlib.Path("/usr/lib"), pathlib.Path("/tmp/lockstep-use"), work)
    return work


def dpkg_of(root):
    """dpkg of this system for a root that has no shell, so only for packages without scripts."""
    return ("dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-architecture", "--log=/dev/null")


def install_bare(packages, root, glibc):
    """What was in the root before."""
    bare_root(root, *glibc)
    before = files_of(root)
    used.run(*dpkg_of(root), "--install", packages["lockstep"], packages["lockstep-dev"])
    used.check_pages(root / "usr/share/doc/lockstep")
    check_size(packages["lockstep"])
    return before


def check_size(package):
    """What a manager of packages says of the space that it takes."""
    told = int(used.run("dpkg-deb", "--field", package, "Installed-Size"))
    listed = re.findall(r"^[-l]\S+ \S+ +(\d+) ", used.run("dpkg-deb", "--contents", package), re.MULTILINE)
    if not 0 <= told - sum(map(int, listed)) / 1024 <= len(listed):
        sys.exit(f"{package}: Installed-Size is {told} KiB, of files of {sum(map(int, listed))} bytes")


def check_bare_module(packages, root, python, hang):
    """Python of another system uses the module."""
    used.run("dpkg-deb", "--extract", packages["python3-lockstep"], root)
    check_module(python, root / "usr/lib/python3/dist-packages", hang, root / "usr")
    for path in (root / "usr/lib/python3", root / "usr/share/doc/python3-lockstep"):
        shutil.rmtree(path)


def remove_bare(root, before):
    used.run(*dpkg_of(root), "--purge", "lockstep-dev", "lockstep")
    check_nothing_left(root, before)


def check_bare(packages, scratch):
    root = scratch / "bare"
    before = install_bare(packages, root, glibc_here())
    if (inside := inside_of(root, ("/usr/bin/lockstep", "version"))) is None:
        sys.exit(f"{root}: installed, `lockstep version` does not run there")
    work = check_programs(inside, root)
    check_bare_module(packages, root, (sys.executable, "-B"), work / "hang")
    remove_bare(root, before)


def check_module(python, folder, hang, prefix):
    """The module beside the package's library finds it, and none of this system."""
    environment = {name: value for name, value in os.environ.items() if name != "LOCKSTEP_DIAGNOSE_LIBRARY"}
    asked = ("import lockstep, sys; print(lockstep.open(sys.argv[1]).diagnose().verdict.statement);"
             "print(open('/proc/self/maps').read().count(sys.argv[2] + '/lib/liblockstep-diagnose.so.0') > 0)")
    told = used.run(*python, "-c", asked, hang, prefix, env={**environment, "PYTHONPATH": str(folder)})
    used.check_diagnosis(told)
    if not told.endswith("True\n"):
        sys.exit(f"another library than that of the package answered:\n{told}")


def check_system(chroot, inside, out):
    """A whole system installs with its own dpkg, uses all three and removes them."""
    packages = packages_of(out)
    for path in packages.values():
        shutil.copy(path, chroot / "tmp" / path.name)
    try:
        used.install(f".deb, {chroot.name}", *inside, "dpkg", "--install", *(f"/tmp/{path.name}" for path in packages.values()))
        work = check_programs(inside, chroot)
        asked = "import lockstep; print(lockstep.open('/tmp/lockstep-use/hang').diagnose().verdict.statement)"
        used.check_diagnosis(used.run(*inside, "/usr/bin/python3", "-c", asked))
        shutil.rmtree(work)
    finally:
        used.run(*inside, "dpkg", "--purge", *packages)
        for path in packages.values():
            (chroot / "tmp" / path.name).unlink()


def check_nothing_left(root, before):
    after = files_of(root)
    if after != before:
        sys.exit(f"{root}: removed, there is more {sorted(after - before)[:10]} and less {sorted(before - after)[:10]} than before")


def packages_of(out):
    packages = {path.name.split("_")[0]: path for path in sorted(out.glob("*.deb"))}
    if set(packages) != {"lockstep", "lockstep-dev", "python3-lockstep"}:
        sys.exit(f"{out}: .deb of {sorted(packages)}")
    return packages


def check_lintian(out):
    packages = packages_of(out)
    if shutil.which("lintian") is None:
        used.skip("lintian is absent; `tools/setup --package-test` brings it")
    if (told := used.run("lintian", "--allow-root", "--fail-on", "error,warning", *packages.values())).strip():
        sys.exit(f"lintian:\n{told}")


def check_here(out, scratch):
    packages = packages_of(out)
    if shutil.which("dpkg") is None:
        used.skip("dpkg is absent")
    if all(subprocess.run(["unshare", "--mount", *mapped, "true"], capture_output=True).returncode != 0 for mapped in ((), ("--map-root-user",))):
        used.skip("installing needs root or user namespaces")
    check_bare(packages, scratch)
