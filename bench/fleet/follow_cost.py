#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a follower takes from the host of a running job: bench/fleet/follow_cost.py [RANKS [SECONDS]]

Needs build/release and a clickhouse-server on PATH (tools/setup --test puts one into build/clickhouse/usr/sbin). The job is a live
one of lockstep-sim-job, which calls as fast as it can. Prints a line every 4 s: share of a core, resident memory now and at most.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fleet"))
import generated_fleet  # noqa: E402

BIN = ROOT / "build/release/bin"
EVERY_S = 4


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return ", ".join(f"{int(lines[name].split()[0]) / 1024:.0f} MiB {words}" for name, words in (("VmRSS", "now"), ("VmHWM", "at most")))


def main():
    ranks, seconds = map(int, (sys.argv[1:] + ["8", "40"][len(sys.argv) - 1:]))
    server = generated_fleet.Server()
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        job = subprocess.Popen([BIN / "lockstep-sim-job", "--live", "--ranks", str(ranks), "--layout", f"dp={ranks},tp=1", "--steps", "1000000", "-o", run],
                               stdout=subprocess.DEVNULL)
        follower = subprocess.Popen([BIN / "lockstep", "push", "--follow", run, "--to", f"{server.url}/fleet#job"])
        try:
            before = 0.0
            for at in range(EVERY_S, seconds + 1, EVERY_S):
                time.sleep(EVERY_S)
                now, files = cpu_seconds(follower.pid), sum(path.stat().st_size for path in run.glob("*.lks"))
                print(f"{at:3} s: {100 * (now - before) / EVERY_S:.1f} % of a core, {memory(follower.pid)}, files {files / 1e6:.0f} MB", flush=True)
                before = now
        finally:
            for process in (follower, job):
                process.terminate()
                process.wait()
            server.close()


main()
