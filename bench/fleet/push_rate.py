#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep push` costs, and what its rows take in the store: bench/fleet/push_rate.py [RANKS [OPERATIONS_A_RANK]]

Needs build/bench (make bench) and a clickhouse-server on PATH (tools/setup --test puts one into
build/clickhouse/usr/sbin). Sender and server share the machine.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fleet"))
import generated_fleet  # noqa: E402

BIN = ROOT / "build/bench/bin"


def main():
    ranks, operations = map(int, (sys.argv[1:] + ["64", "40000"][len(sys.argv) - 1:]))
    server = generated_fleet.Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "lockstep-sim-job", "--ranks", str(ranks), "--layout", f"dp={ranks // 8},tp=8", "--ranks-per-host", "8", "--steps",
                            str(operations // 100), "--ops-per-step", "100", "-o", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
            for turn in range(2):
                subprocess.run([BIN / "push_bench", f"{folder}/run", f"{server.url}/bench{turn}"], check=True)
        for table in ("ops", "rollups"):
            server.ask(f"OPTIMIZE TABLE bench0.{table} FINAL")
            print(table, server.ask("SELECT sum(rows), round(sum(bytes_on_disk) / sum(rows), 1) FROM system.parts "
                                    f"WHERE database = 'bench0' AND table = '{table}' AND active").strip().replace("\t", " rows, "), "bytes a row on disk")
    finally:
        server.close()


main()
