#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Flight Recorder dumps of jobs that go wrong in known ways, and has PyTorch's own analyser judge them.

Usage: bench/gpu/flight_recorder_cases.py OUT LOCKSTEP [CASE...]    (a machine with two GPUs and PyTorch; two ranks)
OUT/<case>/fr_<rank> are the dumps; those that are there are kept. OUT/<case>.txt is what torchfrtrace and the program LOCKSTEP say of
them, each with its seconds and peak memory. `--rank R CASE FOLDER` is one rank.
"""
import os
import pathlib
import subprocess
import sys
import threading
import time

WORLD = 2
SECONDS_OF_HANG = 4


def healthy(dist, torch, groups, rank, tensor):
    for _ in range(8):
        dist.all_reduce(tensor)


def last(function):
    """Eight good steps, then what goes wrong."""
    def run(dist, torch, groups, rank, tensor):
        healthy(dist, torch, groups, rank, tensor)
        torch.cuda.synchronize()
        function(dist, torch, groups, rank, tensor)
    return run


def coalesced(dist, torch, groups, rank, tensor):
    other = torch.ones(64, device="cuda")
    operations = [dist.P2POp(dist.isend, tensor, 1 - rank), dist.P2POp(dist.irecv, torch.empty_like(tensor), 1 - rank)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    with dist._coalescing_manager(device=torch.device("cuda", rank)):
        dist.all_reduce(tensor)
        dist.all_reduce(other)


def uneven(dist, torch, groups, rank, tensor):
    give, take = ([1, 3], [1, 2]) if rank == 0 else ([2, 5], [3, 5])
    dist.all_to_all_single(torch.empty(sum(take), device="cuda"), torch.ones(sum(give), device="cuda"), take, give)


def crossed(dist, torch, groups, rank, tensor):
    first, second = (groups[0], groups[1]) if rank == 0 else (groups[1], groups[0])
    for _ in range(4):
        for group in groups:
            dist.all_reduce(tensor, group=group)
    dist.all_reduce(tensor, group=first)
    dist.all_reduce(tensor, group=second)


def pair(dist, torch, rank):
    """A message each way: afterwards the connection is there."""
    tensor = torch.ones(64, device="cuda")
    for sender in (0, 1):
        (dist.send if rank == sender else dist.recv)(tensor, 1 - rank)
    torch.cuda.synchronize()
    return tensor


def second_send_alone(dist, torch, groups, rank, tensor):
    message = pair(dist, torch, rank)
    if rank == 0:
        dist.send(message.repeat(1 << 18), 1)


def second_receive_alone(dist, torch, groups, rank, tensor):
    message = pair(dist, torch, rank)
    if rank == 1:
        dist.recv(message, 0)


CASES = {
    "healthy": healthy,
    "never_joined": last(lambda d, t, g, r, x: d.all_reduce(x) if r == 0 else None),
    "other_op": last(lambda d, t, g, r, x: d.all_reduce(x) if r == 0 else d.broadcast(x, 0)),
    "other_size": last(lambda d, t, g, r, x: d.all_reduce(x if r == 0 else x[:512])),
    "other_type": last(lambda d, t, g, r, x: d.all_reduce(x if r == 0 else x.half())),
    "other_root": last(lambda d, t, g, r, x: d.broadcast(x, r)),
    "left_out": last(lambda d, t, g, r, x: (d.all_reduce(x) if r == 0 else None, d.all_gather_into_tensor(t.empty(2 * x.numel(), device="cuda"), x))),
    "send_alone": last(lambda d, t, g, r, x: d.isend(t.ones(1 << 24, device="cuda"), 1) if r == 0 else None),
    "second_send_alone": last(second_send_alone),
    "second_receive_alone": last(second_receive_alone),
    "coalesced": last(coalesced),
    "uneven_all_to_all": last(uneven),
    "crossed_groups": last(crossed),
    "subgroup_never_joined": last(lambda d, t, g, r, x: (d.all_reduce(x, group=g[1]) if r == 1 else None)),
}


def rank_of_case(rank, case, folder):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=WORLD)
    groups = [dist.new_group([0, 1], group_desc="first"), dist.new_group([0, 1], group_desc="second")]
    tensor = torch.ones(1024, device="cuda")
    for group in (None, *groups):
        dist.all_reduce(tensor, group=group)
    torch.cuda.synchronize()

    def dump():
        time.sleep(SECONDS_OF_HANG)
        (folder / f"fr_{rank}").write_bytes(torch._C._distributed_c10d._dump_nccl_trace())
        time.sleep(1)  # until the other has, too
        os._exit(0)

    threading.Thread(target=dump).start()
    CASES[case](dist, torch, groups, rank, tensor)
    torch.cuda.synchronize()
    time.sleep(60)


def make(case, number, folder):
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29600 + number), "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
                   "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0", "TORCH_FR_DUMP_ON_TIMEOUT": "0"}
    ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(rank), case, str(folder)], env=environment,
                              stderr=subprocess.DEVNULL) for rank in range(WORLD)]
    for rank in ranks:
        try:
            rank.wait(60)
        except subprocess.TimeoutExpired:
            rank.kill()


def judge(*command):
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return f"exit {child.returncode}; {time.monotonic() - begin:.3f} s; {usage.ru_maxrss / 1024:.0f} MiB\n{said}\n"


def main():
    if sys.argv[1] == "--rank":
        return rank_of_case(int(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]))
    out, lockstep = pathlib.Path(sys.argv[1]), sys.argv[2]
    for number, case in enumerate(sys.argv[3:] or CASES):
        folder = out / case
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            make(case, number, folder)
        theirs = judge(sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "-p", "fr_", str(folder))
        (out / f"{case}.txt").write_text("torchfrtrace: " + theirs + "lockstep: " + judge(lockstep, "diagnose", str(folder)))
        print(case, [file.name for file in sorted(folder.iterdir())], flush=True)


main()
