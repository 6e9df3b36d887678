#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has a job hang under `lockstep trace`, and asks what each kind of evidence says of it, alone and together.

    run_joined.py --lockstep BIN --out FOLDER [--ranks N]

The last rank misbehaves (faulty_job.py); PyTorch gives up after 20 s, dumps its Flight Recorder and ends the job. What lies in
FOLDER/<fault>.db then comes from `lockstep trace` alone: capture, NCCL's logs, dumps; and FOLDER/<fault>.err, what the job printed.
Prints one JSON object a fault, and FOLDER/<fault>.txt holds the report.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time


def asked(lockstep, *inputs):
    done = subprocess.run([lockstep, "diagnose", "--json", *map(str, inputs)], capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {"exit": done.returncode, "error": done.stderr.strip()[-300:]}
    verdict = answer["verdict"] or {}
    return {"exit": done.returncode, "sources": sorted({i["source"] for i in answer["inputs"]}), "cited": verdict.get("sources"),
            **{key: verdict.get(key) for key in ("id", "ranks", "comm", "func", "op_index", "statement")},
            "links": [(link["of"][0]["comm"], link["of"][1]["comm"], link["by"], link["agreeing"], link["compared"]) for link in answer["links"]]}


def measure(options, fault):
    out = pathlib.Path(options.out)
    database, errors = out / f"{fault}.db", out / f"{fault}.err"
    job = pathlib.Path(__file__).resolve().parent / "faulty_job.py"
    command = [options.lockstep, "trace", "-o", str(database), "--", sys.executable, "-m", "torch.distributed.run",
               f"--nproc_per_node={options.ranks}", "--master_port=29711", str(job), "--fault", fault, "--rank", str(options.ranks - 1),
               "--timeout", "20", "--seconds", "120"]
    with open(errors, "w") as stderr:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        time.sleep(14)
        live = asked(options.lockstep, database.with_suffix(".run"))
        code = child.wait()
    (out / f"{fault}.txt").write_text(subprocess.run([options.lockstep, "diagnose", str(database), str(errors)], capture_output=True, text=True).stdout)
    return {"fault": fault, "exit": code, "live": live, "database": asked(options.lockstep, database),
            "printed": asked(options.lockstep, errors), "all": asked(options.lockstep, database, errors),
            "trace_said": [line for line in errors.read_text(errors="replace").splitlines() if line.startswith("lockstep")][-6:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--faults", default="sleep,other-op")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for fault in options.faults.split(","):
        print(json.dumps(measure(options, fault)), flush=True)


main()
