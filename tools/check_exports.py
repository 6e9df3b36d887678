#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the libraries ask of and give to the process that loads them.

Usage: check_exports.py [LIB_FOLDER]. Every capture library liblockstep*.so in it (default build/release/lib) needs libc alone, in a version that old images have, has no undefined name of a C++ run time, and exports exactly
the names in tests/abi/<library without .so>.syms.
"""
import pathlib
import re
import subprocess
import sys

import source_tree

NOT_CAPTURE = {"liblockstep-diagnose.so"}  # for programs that read
NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 17)  # built by GCC: of RHEL 7, older than every image with NCCL's profiler interface
CPP_NAME = re.compile(r"^(_ZS|_ZNS|_ZNKS|_Zn|_Zd|__cxa_(?!finalize|atexit|thread_atexit)|__gxx|_Unwind)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_needs(library):
    dynamic = output("readelf", "-dW", str(library))
    for name in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
        if name not in NEEDED:
            yield f"{library.name}: needs {name}; libc alone is allowed"
    for name, version in re.findall(r" (\S+)@GLIBC_([\d.]+)", output("nm", "-D", "--undefined-only", str(library))):
        if tuple(int(part) for part in version.split(".")) > NEWEST_GLIBC:
            yield f"{library.name}: {name} needs glibc {version}; a program in an older image would not start with it preloaded"
    for name in output("nm", "-D", "--undefined-only", "-j", str(library)).split():
        if CPP_NAME.match(name):
            yield f"{library.name}: undefined name of a C++ run time: {name}"


def check(library):
    if library.name not in NOT_CAPTURE:
        yield from check_needs(library)
    exported = {name.split("@")[0] for name in output("nm", "-D", "--defined-only", "-j", str(library)).split()}
    listed = source_tree.ROOT / "tests" / "abi" / (library.name.removesuffix(".so") + ".syms")
    if not listed.exists():
        yield f"{library.name}: no list of its names at {listed.relative_to(source_tree.ROOT)}"
        return
    expected = {line for line in listed.read_text().split("\n") if line and not line.startswith("#")}
    for name in sorted(exported - expected):
        yield f"{library.name}: exports {name}, which {listed.name} does not list"
    for name in sorted(expected - exported):
        yield f"{library.name}: does not export {name}, which {listed.name} lists"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else source_tree.ROOT / "build/release/lib"
    libraries = sorted(path for path in folder.glob("liblockstep*.so") if path.name != "liblockstep-other-hsa-tool.so")
    problems = [] if libraries else [f"{folder} has no liblockstep*.so; run make build first"]
    for library in libraries:
        problems += check(library)
    source_tree.finish(problems, ", ".join(library.name for library in libraries) + ": libc only, exact exports")


main()
