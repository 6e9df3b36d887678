#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the marks of lockstep.torch cost a training step, in ns of the CPU: medians of rounds of an empty loop, with and without them.

Usage: bench/torch_marks.py LIB [STEPS]    (LIB: the folder of liblockstep.so; without a recorder: "-")
PyTorch need not be there: the optimizer and its groups are stand-ins that call what PyTorch's call.
"""
import os
import pathlib
import statistics
import sys
import tempfile
import time
import types

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "python"
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests")]
from stand_ins import Optimizer  # noqa: E402

ROUNDS = 15


def ns_a_step(batches, optimizer):
    begun = time.thread_time_ns()
    count = 0
    for _ in batches:
        optimizer.step()
        count += 1
    return (time.thread_time_ns() - begun) / count


def main():
    library, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LOCKSTEP_DIR=folder, LOCKSTEP_LIBRARY="" if library == "-" else os.path.join(library, "liblockstep.so"))
        import lockstep
        import lockstep.torch

        assert lockstep.loaded() == (library != "-"), "no recorder"
        groups = {object(): str(number) for number in range(8)}
        world = types.SimpleNamespace(pg_names=groups, pg_backend_config=dict.fromkeys(groups, "gloo"), pg_group_ranks={})
        sys.modules["torch.distributed.distributed_c10d"] = types.SimpleNamespace(_world=world)
        cases = (("steps", {}, False), ("steps, groups and gc", {"groups": True, "gc": True}, False), ("all, and loading", {"groups": True, "gc": True}, True))
        for name, options, loads in cases:
            costs = []
            for _ in range(ROUNDS):
                plain = Optimizer()
                without = ns_a_step(range(steps), plain)
                with lockstep.torch.watch(plain, **options):
                    costs.append(ns_a_step(lockstep.torch.loading(range(steps)) if loads else range(steps), plain) - without)
            print(f"{name}: {statistics.median(costs):.0f} ns a step, {min(costs):.0f} to {max(costs):.0f}")


if __name__ == "__main__":
    main()
