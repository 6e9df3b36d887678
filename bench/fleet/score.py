#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `lockstep fleet` names the fault of a generated fleet: bench/fleet/score.py FIRST_SEED COUNT [HOSTS [JOBS_A_DAY]]

Needs build/release and a clickhouse-server on PATH (tools/setup --test puts one into build/clickhouse/usr/sbin). Faults take turns.
"""
import collections
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fleet"))
import generated_fleet  # noqa: E402

LOCKSTEP = ROOT / "build/release/bin/lockstep"


def main():
    first, count, *size = map(int, sys.argv[1:])
    sizes = dict(zip(("hosts", "jobs_a_day"), size))
    server = generated_fleet.Server()
    tally, dated, timed = collections.Counter(), 0, 0.0
    try:
        for seed in range(first, first + count):
            url = f"{server.url}/seed{seed}"
            subprocess.run([LOCKSTEP, "push", ROOT / "tests/traces/v1.7/ring.lks.gz", "--to", url], check=True, stdout=subprocess.DEVNULL)
            fleet = generated_fleet.Fleet(seed, generated_fleet.FAULTS[seed % len(generated_fleet.FAULTS)], **sizes)
            fleet.push(server.ask, f"seed{seed}")
            rows, begin = len(fleet.rows["rollups"]), time.monotonic()
            found = generated_fleet.named(LOCKSTEP, url, fleet.days)
            took, fault = time.monotonic() - begin, fleet.fault
            verdict = generated_fleet.judge(fault, found)
            tally[verdict] += 1
            if verdict == "right" and fault.kind in ("host", "link"):
                timed += 1
                dated += generated_fleet.is_dated(fault, found)
            print(f"seed {seed}: {verdict}; {fault.kind} {fault.name}; named {sorted({one[:2] for one in found})}; {rows:,} rows, {took:.1f} s", flush=True)
            server.ask(f"DROP DATABASE seed{seed}")
    finally:
        server.close()
    print(f"{count} fleets: {tally['right']} right, {tally['missed']} missed, {tally['wrong']} wrong; since when right {dated:.0f} of {timed:.0f}")


main()
