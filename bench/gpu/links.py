#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep links` and `diagnose` say of the links of two GPUs, healthy and slowed down without touching hardware.

    links.py LOCKSTEP OUT.json [--times 10]

LOCKSTEP is the installed program. First the matrix: the median of every kind of cell, beside what a prototype measured on 2 x H200. Then the
counters: what NVLink's rose by while a program copied, beside what it copied. Then, `times` times, a job of two ranks under `lockstep trace`:
as it is; with NCCL_P2P_DISABLE; with one channel; with one channel for a peer; with copies of memory that is not pinned; beside a process that
copies from the one GPU to the other; and `lockstep links --force` beside such a process. Right is who names the cause, and of the job as it is
who names nobody. Exit 1 if an answer is wrong.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

GIB = 1 << 30
# GB/s, and ns of one load: 256 MiB copies between two H200 over NVLink 4, and over PCIe 5 x16, of a prototype (driver 580, 2026).
EXPECTED = {"write": 394, "read": 390, "both-ways": 390, "load-latency": 850, "host-to-gpu": 55.5, "gpu-to-host": 55.3, "host-to-all-gpus": 55.4,
            "all-gpus-to-host": 55.3}
# Of each case: what changes, and the finding that names it.
CASES = {
    "as it is": ({}, None),
    "NCCL_P2P_DISABLE": ({"NCCL_P2P_DISABLE": "1"}, "fallback.p2p-disabled"),
    "one channel": ({"NCCL_MIN_NCHANNELS": "1", "NCCL_MAX_NCHANNELS": "1"}, "slow-link.channels"),
    "one channel for a peer": ({"NCCL_MIN_P2P_NCHANNELS": "1", "NCCL_MAX_P2P_NCHANNELS": "1"}, "slow-link.channels"),
    "pageable memory": ({"JOB_PAGEABLE": "1", "LOCKSTEP_CUDA": "copies"}, "slow-link.pageable"),
    "a competing copy": ({"JOB_STEPS": "300"}, "slow-link.nvlink-others"),
}


def job():
    """One rank: a batch from the host, a product, an all-reduce, an exchange and a send."""
    import torch
    import torch.distributed as dist
    rank, device = int(os.environ["RANK"]), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    batch = torch.ones(32 << 20)
    if "JOB_PAGEABLE" not in os.environ:
        batch = batch.pin_memory()
    matrix = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    gradient = torch.ones(32 << 20, device=device)
    received = torch.empty_like(gradient)
    for step in range(int(os.environ.get("JOB_STEPS", "80"))):
        batch.to(device, non_blocking=True)
        torch.mm(matrix, matrix)
        dist.all_reduce(gradient)
        for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, gradient, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]):
            request.wait()
        if rank == 0:
            dist.send(gradient, 1)
        else:
            dist.recv(received, 0)
        if step % 4 == 3:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    dist.destroy_process_group()


def copy(gibibytes):
    """From GPU 0 to GPU 1, GiB by GiB, until so many are copied or it is told to end; prints the bytes."""
    import torch
    source, target = torch.ones(1 << 28, device="cuda:0"), torch.empty(1 << 28, device="cuda:1")
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    copied = 0
    while copied < gibibytes and not ended:
        for _ in range(8):
            target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)
        copied += 8
        if copied == 8:
            print("ready", flush=True)
    print(copied * GIB, flush=True)


def start_copy(gibibytes=1 << 40):
    process = subprocess.Popen([sys.executable, __file__, "copy", str(gibibytes)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", "the copying process did not start"
    return process


def answer(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return {**json.loads(done.stdout), "exit_code": done.returncode}


def matrix(options):
    values = {}
    for _ in range(options.times):
        for cell in answer([options.lockstep, "links", "--json"])["measurements"]:
            values.setdefault(cell["kind"], []).append(cell["value"])
    print("cell              median   lowest  highest  prototype  ratio")
    for kind, of in values.items():
        middle = statistics.median(of)
        print(f"{kind:16} {middle:7.1f} {min(of):8.1f} {max(of):8.1f} {EXPECTED[kind]:10.1f} {middle / EXPECTED[kind]:6.3f}")
    return {kind: {"median": statistics.median(of), "lowest": min(of), "highest": max(of), "prototype": EXPECTED[kind]} for kind, of in values.items()}


def nvlink_rise(log):
    """Bytes that each NVLink counter of a log rose by."""
    names, first, last = {}, {}, {}
    for line in log.read_text().splitlines():
        words = line.split()
        if words[0] == "counter" and words[2] == "gpu" and words[4] in ("nvlink_tx_bytes", "nvlink_rx_bytes"):
            names[words[1]] = f"{words[3]} {words[4]}"
        elif words[0] == "at":
            for number, value in (word.split("=") for word in words[2:]):
                if number in names and value.isdigit():
                    first.setdefault(number, int(value))
                    last[number] = int(value)
    return {name: last[number] - first[number] for number, name in names.items() if number in last}


def counters(options, folder):
    run = pathlib.Path(folder, "counters")
    run.mkdir()
    sampler = subprocess.Popen([options.lockstep, "counters", str(run)], stderr=subprocess.DEVNULL)
    time.sleep(3)
    copied = int(start_copy(64).communicate()[0])
    sampler.send_signal(signal.SIGINT)
    sampler.wait()
    rose = nvlink_rise(next(run.glob("links.*.log")))
    print(f"NVLink: {copied} bytes copied; counters rose by {sorted(rose.values())}")
    return {"copied": copied, "rose": rose}


def named(report):
    """Findings that are no notes, and the others that say what a link carried."""
    return [finding["id"] for finding in report["findings"] if finding["severity"] != "note" or finding["id"].startswith("slow-link.")]


def judge(case, report, expected):
    verdict, ids = report["verdict"], named(report)
    if isinstance(verdict, dict):  # of diagnose
        verdict = verdict["id"]
    # Somebody else's traffic slows both ranks down, or one more than the other: then that rank's finding cites it.
    right = not report["exit_code"] if expected is None else expected in ids
    return {"case": case, "right": right, "verdict": verdict, "findings": ids}


def run_job(options, folder, case, variables):
    database = os.path.join(folder, f"{case.replace(' ', '-')}.db")
    command = [options.lockstep, "trace", "-o", database, sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", __file__, "job"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{case}: {done.stderr.strip()[-500:]}")
    return answer([options.lockstep, "diagnose", "--json", database])


def round_of(options, folder):
    results = []
    for case, (variables, expected) in CASES.items():
        competitor = start_copy() if case == "a competing copy" else None
        try:
            results.append(judge(case, run_job(options, folder, case, variables), expected))
            if competitor is not None:
                results.append(judge("links --force beside a copy", answer([options.lockstep, "links", "--force", "--json"]), "slow-link.in-use"))
        finally:
            if competitor is not None:
                competitor.terminate()
                competitor.wait()
    for result in results:
        print(f"{'right' if result['right'] else 'WRONG'}  {result['case']}: {result['verdict']}", flush=True)
    return results


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "job":
        return job()
    if len(sys.argv) > 2 and sys.argv[1] == "copy":
        return copy(int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep", type=os.path.abspath)
    parser.add_argument("out")
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    result = {"date": time.strftime("%Y-%m-%d"), "version": subprocess.run([options.lockstep, "version"], capture_output=True, text=True).stdout.strip()}
    with tempfile.TemporaryDirectory(prefix="lockstep-links-") as folder:
        result["matrix"], result["counters"], result["cases"] = matrix(options), counters(options, folder), []
        for _ in range(options.times):
            result["cases"] += round_of(options, folder)
            pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    by_case = {}
    for case in result["cases"]:
        by_case.setdefault(case["case"], []).append(case["right"])
    for case, right in by_case.items():
        print(f"{case:28} {sum(right)} of {len(right)} right")
    return 0 if all(case["right"] for case in result["cases"]) else 1


sys.exit(main())
