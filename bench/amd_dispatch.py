#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a dispatch costs on host B (sim/hsa): Debian's ROCr 5.2.3 on a software device.

Usage: amd_dispatch.py BUILD [ROUNDS]. In each round the same program runs without a tool, with a tools library that passes packets through, and with ours,
one after the other; of each the median is printed, in ns a dispatch, and of how many of all dispatches ours recorded times. BUILD is a build folder such as build/release.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIGNALLED = ["--dispatches", "100000", "--signal-every", "1", "--unwaited"]
CASES = {"no signal": ["--dispatches", "200000"], "a signal each": SIGNALLED, "a signal each, the queue full": [*SIGNALLED, "--in-flight", "4094"]}


def run(build, tool, arguments):
    folder = tempfile.mkdtemp(dir="/dev/shm")
    lib = build / "lib"
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{lib}/software-gpu:{ROOT}/build/rocm/usr/lib/x86_64-linux-gnu", LOCKSTEP_DIR=folder, LOCKSTEP_HSA="print")
    environment.pop("HSA_TOOLS_LIB", None)
    if tool:
        environment["HSA_TOOLS_LIB"] = f"{lib}/{tool}"
    done = subprocess.run([build / "bin/lockstep-rocr-job", *arguments], env=environment, capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    recorded = re.search(r"recorded OK: +(\d+)", done.stderr)
    return json.loads(done.stdout)["ns_per_dispatch"], int(recorded[1]) if recorded else 0


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    tools = {"none": "", "pass-through": "liblockstep-other-hsa-tool.so", "lockstep": "liblockstep-hsa.so"}
    for case, arguments in CASES.items():
        taken, recorded = {name: [] for name in tools}, 0
        for _ in range(rounds):
            for name, tool in tools.items():
                ns, count = run(build, tool, arguments)
                taken[name].append(ns)
                recorded += count
        medians = {name: statistics.median(values) for name, values in taken.items()}
        extra = statistics.median(ours - theirs for ours, theirs in zip(taken["lockstep"], taken["pass-through"]))
        print(f"{case}: " + ", ".join(f"{name} {ns:.0f} ns" for name, ns in medians.items()) + f"; lockstep over pass-through {extra:.0f} ns; {recorded} of {rounds * int(arguments[1])} recorded")


main()
