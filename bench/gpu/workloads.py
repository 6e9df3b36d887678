# SPDX-License-Identifier: Apache-2.0
"""Communication workloads for a GPU machine: torchrun --nproc_per_node=N workloads.py SCENARIO

collectives   all-reduce, all-gather, reduce-scatter, broadcast, all-to-all and send/recv over sizes
ddp           a small model under DistributedDataParallel, with a tensor-parallel-like all-reduce between neighbours
both          one after the other
"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def collectives(rank: int, world: int, device: torch.device) -> None:
    for elements in (256, 16 << 10, 1 << 20, 16 << 20):
        data = torch.ones(elements, device=device)
        gathered = torch.empty(elements * world, device=device)
        for _ in range(5):
            dist.all_reduce(data)
        dist.all_gather_into_tensor(gathered, data)
        dist.reduce_scatter_tensor(data, gathered)
        dist.broadcast(data, src=0)
        dist.all_to_all_single(torch.empty_like(gathered), gathered)
        to, source = (rank + 1) % world, (rank - 1) % world
        requests = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, data, to), dist.P2POp(dist.irecv, torch.empty_like(data), source)])
        for request in requests:
            request.wait()
    torch.cuda.synchronize()


def ddp(rank: int, world: int, device: torch.device, steps: int = 10) -> None:
    torch.manual_seed(0)
    pairs = [dist.new_group(list(range(first, min(first + 2, world)))) for first in range(0, world, 2)]
    layers = [layer for _ in range(6) for layer in (nn.Linear(2048, 2048), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), device_ids=[device.index], bucket_cap_mb=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(64, 2048, device=device)
    for _ in range(steps):
        output = model(batch)
        dist.all_reduce(output.detach(), group=pairs[rank // 2])
        output.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def main() -> None:
    scenario = sys.argv[1] if len(sys.argv) == 2 else ""
    if scenario not in ("collectives", "ddp", "both"):
        sys.exit(__doc__)
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    world = dist.get_world_size()
    if scenario != "ddp":
        collectives(rank, world, device)
    if scenario != "collectives":
        ddp(rank, world, device)
    dist.destroy_process_group()


main()
