# SPDX-License-Identifier: Apache-2.0
"""One rank of what run_overhead measures with: steps of a model under DistributedDataParallel, and of one under FSDP.

Says "ready"; for each line on stdin measures both and answers with a line of JSON; at the end of stdin says what it used. The first
round also makes the models: until then nothing of this job is on the GPU. Needs the variables that torchrun sets.
"""
import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, ROWS = 2048, 8, 8192  # 270 million parameters in bf16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, rows):
        return rows + self.narrow(torch.relu(self.widen(rows)))


def model_of(device):
    torch.manual_seed(0)
    return nn.Sequential(*[Layer() for _ in range(LAYERS)]).to(device, torch.bfloat16)


def data_parallel(device):
    return DistributedDataParallel(model_of(device), device_ids=[device.index], gradient_as_bucket_view=True)


def sharded(device):
    model = model_of(device)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return model


class Training:
    def __init__(self, model, device):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
        self.rows = torch.randn(ROWS, WIDTH, device=device, dtype=torch.bfloat16)

    def one_step_us(self, steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.model(self.rows).float().square().mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / steps * 1e6


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def say(**values):
    print(json.dumps(values), flush=True)


def main():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    trainings = {}
    say(ready=True)
    for _ in sys.stdin:
        trainings = trainings or {"ddp_step_us": Training(data_parallel(device), device), "fsdp_step_us": Training(sharded(device), device)}
        cpu, begin = cpu_seconds(), time.perf_counter()
        times = {}
        for name, training in trainings.items():
            training.one_step_us(2)
            times[name] = round(statistics.median(training.one_step_us(6) for _ in range(3)), 1)
        say(**times, cpu_s=cpu_seconds() - cpu, wall_s=time.perf_counter() - begin)
    say(operations=None, peak_rss_kib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
