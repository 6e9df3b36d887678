# SPDX-License-Identifier: Apache-2.0
"""One rank of a small training-like job in which one rank misbehaves from a given step on.

Needs RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torchrun sets them. Prints a line `fault TIME` (seconds since the epoch) when
the misbehaving rank begins to. run_live_faults.py starts the ranks and watches them with `lockstep diagnose`.
"""
import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "sleep", "other-op", "slow", "kill", "stop"], default="none")
    parser.add_argument("--rank", type=int, default=1, help="who misbehaves")
    parser.add_argument("--at", type=int, default=300, help="from this step on")
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which PyTorch gives an operation up")
    options = parser.parse_args()

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=options.timeout), device_id=torch.device("cuda", rank))
    gradient = torch.ones(1 << 18, device="cuda")
    gathered = torch.empty(world << 18, device="cuda")
    matrix = torch.ones(2048, 2048, device="cuda", dtype=torch.bfloat16)
    end = time.time() + options.seconds

    for step in range(options.steps):
        faulty = rank == options.rank and step >= options.at
        if faulty and step == options.at:
            print(f"fault {time.time():.6f}", flush=True)
        for _ in range(4):
            torch.mm(matrix, matrix)
        if faulty and options.fault == "sleep":
            time.sleep(options.seconds)
        if faulty and options.fault == "slow":
            time.sleep(0.02)
        # Killed and stopped from outside: here they only wait to be found where the others expect a collective.
        if faulty and options.fault in ("kill", "stop"):
            time.sleep(options.seconds)
        if faulty and step == options.at and options.fault == "other-op":
            dist.all_gather_into_tensor(gathered, gradient)
        else:
            dist.all_reduce(gradient)
        dist.all_reduce(gradient[:2])
        torch.cuda.synchronize()
        if time.time() > end:
            break
    dist.destroy_process_group()


main()
