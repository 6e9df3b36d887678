# SPDX-License-Identifier: Apache-2.0
"""The simulated jobs that `run` has diagnosed: a fixed list, each a command line of lockstep-sim-job.

200 faulty jobs over every class and variant, and 50 healthy ones, of 2 to 1,024 ranks; and a short list of small ones.
"""
import dataclasses
import random

FAULTY, HEALTHY = 200, 50
SIZES = (2, 4, 8, 8, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128, 256, 512, 1024)
QUICK_SIZES = (4, 8, 16)
DEEP_RANKS = 256  # proxy steps of more ranks are only disk

# spec, least ranks, whether it shows in proxy steps or GPU times only, least hosts
FAULTS = (
    ("never-joined", 2, False, 1),
    ("joined-other-op:count", 2, False, 1),
    ("host-late", 2, False, 1),
    ("rank-dead:between", 2, False, 1),
    ("gpu-late", 2, True, 1),
    ("cross-comm-deadlock:blocking", 2, False, 1),
    ("stuck-in-gpu:kernel", 2, True, 1),
    ("stuck-in-network:send", 4, True, 2),
    ("rank-unreachable", 4, False, 2),
    ("init-stuck", 2, False, 1),
    ("slow-link", 8, True, 3),
    ("slow-nic", 8, True, 3),
    ("imbalance:rotating", 4, False, 1),
    ("imbalance:once", 2, False, 1),
    ("evidence-missing:file", 2, False, 1),
    ("too-many-failed", 8, False, 1),
    ("never-joined:finished", 2, False, 1),
    ("joined-other-op:dtype", 2, False, 1),
    ("joined-other-op:func", 2, False, 1),
    ("joined-other-op:root", 2, False, 1),
    ("joined-other-op:order", 2, False, 1),
    ("cross-comm-deadlock:enqueued", 2, False, 1),
    ("rank-dead:inside", 2, False, 1),
    ("stuck-in-gpu:compute", 2, True, 1),
    ("stuck-in-network:recv", 4, True, 2),
    ("stuck-in-network:peer", 4, True, 2),
    ("stuck-in-network:gpu", 4, True, 2),
    ("fallback:seen", 8, True, 3),
    ("fallback:unseen", 8, True, 3),
    ("evidence-missing:half", 4, False, 1),
    ("evidence-missing:ring", 4, False, 1),
    ("stuck-in-gpu", 2, False, 1),  # mostly without GPU times
)


@dataclasses.dataclass(frozen=True)
class Case:
    fault: str
    ranks: int
    options: tuple  # of lockstep-sim-job

    @property
    def name(self):
        return " ".join(self.options)


def powers(limit):
    value = 1
    while value <= limit:
        yield value
        value *= 2


def layout(draw, ranks, hosts):
    """(layout, ranks per host). Data groups reach over `hosts` hosts where that is asked for."""
    per_host = 8
    while per_host > 1 and (ranks % per_host or ranks // per_host < hosts):
        per_host //= 2
    tensor = draw.choice([size for size in powers(per_host) if ranks % size == 0])
    stages = [size for size in powers(4) if ranks % (tensor * size) == 0 and ranks // (tensor * size) >= 2]
    if hosts > 1:
        # A data group of so many members, `tensor` ranks apart, lies on so many hosts.
        stages = [size for size in stages if ranks // size // per_host >= hosts]
        tensor = tensor if stages else 1
    pipeline = draw.choice(stages or [1])
    if ranks // (tensor * pipeline) < 2:
        tensor = pipeline = 1
    data = ranks // (tensor * pipeline)
    expert = draw.choice([size for size in powers(min(8, data)) if data % size == 0]) if draw.random() < 0.25 else 1
    return f"dp={data},tp={tensor},pp={pipeline},ep={expert}", per_host


def case(number, fault, deep, hosts, sizes):
    draw = random.Random(number)
    ranks = draw.choice(sizes)
    mode = "deep" if deep else draw.choice(("lite", "default", "default", "deep"))
    if mode == "deep" and ranks > DEEP_RANKS:
        mode = "default" if not deep else mode
    large = ranks > 128
    shape, per_host = layout(draw, ranks, hosts)
    options = ["--seed", number, "--ranks", ranks, "--layout", shape, "--ranks-per-host", per_host, "--mode", mode,
               "--steps", 12 if large else draw.choice((20, 30, 60)), "--ops-per-step", draw.choice((40, 80, 120)),
               "--fault", fault]
    if draw.random() < 0.3:
        options.append("--marks")
    return Case(fault, ranks, tuple(map(str, options)))


def faulty(number, faults, sizes):
    fault, least, deep, hosts = faults[number % len(faults)]
    most = DEEP_RANKS if deep else max(sizes)
    return case(1000 + number, fault, deep, hosts, [size for size in sizes if least <= size <= most])


def full():
    cases = [faulty(number, FAULTS, SIZES) for number in range(FAULTY)]
    return cases + [case(5000 + number, "none", False, 1, SIZES) for number in range(HEALTHY)]


def quick():
    faults = [fault for fault in FAULTS[:18] if fault[1] <= max(QUICK_SIZES)]
    cases = [faulty(number, faults, QUICK_SIZES) for number in range(len(faults))]
    return cases + [case(5000 + number, "none", False, 1, QUICK_SIZES) for number in range(7)]
