# SPDX-License-Identifier: Apache-2.0
"""One rank of a training-like job in which one rank misbehaves from a given step on.

Needs RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torchrun sets them. Prints `begin TIME` before its first step and, on the misbehaving
rank, `onset TIME` (seconds since the epoch) when it begins to. run_live_faults.py starts the ranks and watches them with `lockstep diagnose`.

Faults of small all-reduces in steps of 0.3 ms, of matrix products with all-reduces in steps of some 25 ms, and, as healthy jobs, of the latter
and of a sharded model, and of products with messages in steps of some 20 ms: see FAULTS.
"""
import argparse
import datetime
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist

# A process that keeps its CPU busy for as long as its parent lives.
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(100000): pass"


class Small:
    """What only communication fills: 0.3 ms."""
    first = 300  # step of the fault

    def __init__(self, device, world):
        self.gradient = torch.ones(1 << 18, device=device)
        self.gathered = torch.empty(world << 18, device=device)
        self.matrix = torch.ones(2048, 2048, device=device, dtype=torch.bfloat16)

    def step(self, other_operation=False):
        for _ in range(4):
            torch.mm(self.matrix, self.matrix)
        if other_operation:
            dist.all_gather_into_tensor(self.gathered, self.gradient)
        else:
            dist.all_reduce(self.gradient)
        dist.all_reduce(self.gradient[:2])
        torch.cuda.synchronize()


class Training:
    """Products with gradients behind them, and a loss that is read: some 25 ms."""
    first = 100

    def __init__(self, device, world):
        self.matrix = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
        self.gradients = [torch.ones(1 << 24, device=device) for _ in range(6)]
        self.loss = torch.zeros(4, device=device)

    def multiply(self, times):
        for _ in range(times):
            torch.mm(self.matrix, self.matrix)

    def step(self):
        pending = []
        for gradient in self.gradients:
            self.multiply(2)
            pending.append(dist.all_reduce(gradient, async_op=True))
        for handle in pending:
            handle.wait()
        self.read_loss()

    def read_loss(self):
        dist.all_reduce(self.loss)
        self.loss.sum().item()

    def evaluate(self, batches):
        for _ in range(10):
            self.multiply(batches)
        self.read_loss()

    def write_checkpoint(self):
        with open(os.devnull, "wb") as sink:
            for gradient in self.gradients:
                sink.write(gradient.cpu().numpy().tobytes())


class Exchange:
    """Products, each with a message to the next rank and one from the rank before, and a loss that is read: some 20 ms."""
    first = 100

    def __init__(self, device, world):
        self.matrix = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
        self.more = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
        self.sent, self.received = (torch.ones(1 << 22, device=device) for _ in range(2))
        self.loss = torch.zeros(4, device=device)
        self.next, self.before = (dist.get_rank() + 1) % world, (dist.get_rank() - 1) % world

    def step(self, is_slow=False):
        for _ in range(6):
            torch.mm(self.matrix, self.matrix)
            if is_slow:
                torch.mm(self.more, self.more)
                torch.mm(self.more, self.more)
            messages = [dist.P2POp(dist.isend, self.sent, self.next), dist.P2POp(dist.irecv, self.received, self.before)]
            for handle in dist.batch_isend_irecv(messages):
                handle.wait()
        dist.all_reduce(self.loss)
        self.loss.sum().item()


class Sharded:
    """Fully sharded layers, which gather their weights; ranks build them for a while, each for another."""
    first = 100

    def __init__(self, device, world):
        import training_steps
        time.sleep(0.5 * dist.get_rank())
        self.training = training_steps.Training(training_steps.sharded(device), device)

    def step(self):
        self.training.one_step_us(1)


def starve():
    """This process, all its threads, and three busy ones on one CPU."""
    cpu = min(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cpu})
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKSTEP", "NCCL", "CUDA", "LD_PRELOAD"))}
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", BURN], env=inherited)


class Misbehaviour:
    """What a rank does before a step, `n` steps after the first of its fault."""

    def __init__(self, name, job, seconds):
        self.name, self.job, self.seconds, self.announced = name, job, seconds, False

    def begins(self):
        if not self.announced:
            print(f"onset {time.time():.6f}", flush=True)
        self.announced = True

    def before_step(self, n):
        act = getattr(self, self.name.replace("-", "_"), None)
        if act is not None and n >= 0:
            act(n)

    def sleep(self, n):
        self.begins()
        time.sleep(self.seconds)

    # Killed and stopped from outside: here they only wait to be found where the others expect a collective.
    kill = stop = sleep

    def slow(self, n):
        self.begins()
        time.sleep(0.02)

    def pause(self, n):
        if n <= 50:
            self.begins()
            time.sleep(0.167)

    def starved(self, n):
        if n == 0:
            self.begins()
            starve()

    def periodic(self, n):
        if n % 40 == 0:
            self.begins()
            self.job.write_checkpoint()

    def growing(self, n):
        if n > 0:
            self.begins()
            time.sleep(1e-4 * n)


# By fault: the job, and what ranks do in it that is not done before a step.
FAULTS = {
    "none": Small, "sleep": Small, "other-op": Small, "slow": Small, "kill": Small, "stop": Small,
    "healthy": Training, "pause": Training, "starved": Training, "periodic": Training, "uneven-eval": Training, "growing": Training,
    "sharded": Sharded, "slow-gpu": Exchange,
}
EVALUATE_EVERY, BATCHES, MORE_BATCHES = 60, 12, 20


def step(options, job, misbehaviour, number, faulty):
    if faulty and options.fault == "other-op" and number == options.at:
        misbehaviour.begins()
        job.step(other_operation=True)
        return
    if faulty and options.fault == "slow-gpu" and number >= options.at:
        misbehaviour.begins()
        job.step(is_slow=True)
        return
    job.step()
    if options.fault == "uneven-eval" and number % EVALUATE_EVERY == EVALUATE_EVERY - 1:
        more = faulty and number >= options.at
        if more:
            misbehaviour.begins()
        job.evaluate(MORE_BATCHES if more else BATCHES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--rank", type=int, default=1, help="who misbehaves")
    parser.add_argument("--at", type=int, help="from this step on (small all-reduces: 300, else 100)")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which PyTorch gives an operation up")
    parser.add_argument("--wait", action="store_true", help="for a line on stdin before the ranks meet")
    options = parser.parse_args()
    kind = FAULTS[options.fault]
    options.at = kind.first if options.at is None else options.at

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)
    if options.wait:
        print("ready", flush=True)
        sys.stdin.readline()
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=options.timeout), device_id=device)
    job = kind(device, world)
    faulty = rank == options.rank
    misbehaviour = Misbehaviour(options.fault, job, options.seconds)
    print(f"begin {time.time():.6f}", flush=True)
    end, number = time.time() + options.seconds, 0
    while time.time() < end:
        if faulty:
            misbehaviour.before_step(number - options.at)
        step(options, job, misbehaviour, number, faulty)
        number += 1
    dist.destroy_process_group()


main()
