# SPDX-License-Identifier: Apache-2.0
"""The simulated jobs that `run` has diagnosed: each a command line of lockstep-sim-job, drawn from a base.

Over a thousand, in rows: faults of every class and variant, lateness by pattern, healthy jobs, and evidence that is broken off, mixed or
missing. 2 to 1,024 ranks, most of them few. One base always gives the same jobs.
"""
import dataclasses
import random

BASE = 1000  # unless another one is asked for
FAULTY, LATE, PLAIN, NASTY, BROKEN, MIXED, REMOVED, RINGS = 384, 216, 80, 168, 80, 40, 80, 80
SIZES = (2, 4, 8, 8, 16, 16, 24, 32, 32, 48, 64, 64)
LARGE_SIZES = (96, 128, 256, 512, 1024)
LARGE_SHARE = 0.06
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


# Spec, least ranks, whether it shows in GPU times only, least hosts.
PATTERNS = tuple((f"late:{pattern}{side}", {"few": 24, "host": 12}.get(pattern, 2), bool(side) or pattern == "host", 3 if pattern == "host" else 1)
                 for side in ("", ":gpu")
                 for pattern in ("every", "since", "window", "periodic", "tail", "growing", "once", "few", "host"))
UNREST = tuple((f"none:{kind}", 4, False, 1) for kind in ("jitter-storm", "checkpoint", "uneven-data", "evaluation", "late-joiner", "restart",
                                                          "elastic", "recompilation"))
PLAIN_JOB = (("none", 2, False, 1),)
# Whose runs are broken off, or kept by a ring alone: a hang soon after it began, lateness and health in the middle.
HANGS = tuple(fault for fault in FAULTS if fault[0].partition(":")[0] in ("never-joined", "joined-other-op", "rank-dead", "cross-comm-deadlock", "stuck-in-gpu"))
GO_ON = (("none", 2, False, 1), ("none:checkpoint", 2, False, 1), ("none:restart", 2, False, 1), ("late:every", 2, False, 1), ("late:every:gpu", 2, True, 1))


@dataclasses.dataclass(frozen=True)
class Case:
    row: str        # of which table
    fault: str
    options: tuple  # of lockstep-sim-job
    other: tuple = ()     # of a second job whose files are mixed in
    operands: bool = False  # the two are given as two folders, else their files lie in one
    removed: float = 0.0  # share of the files that are taken away
    seed: int = 0         # of what is taken away

    @property
    def name(self):
        text = " ".join(self.options)
        if self.other:
            text += (" and, given beside it: " if self.operands else " and, in the same folder: ") + " ".join(self.other)
        return text + (f" without {self.removed:.0%} of its files (seed {self.seed})" if self.removed else "")


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


def size(draw, fault, sizes):
    _, least, deep, _ = fault
    if sizes is SIZES and draw.random() < LARGE_SHARE:
        sizes = LARGE_SIZES
    return draw.choice([ranks for ranks in sizes if ranks >= least and not (deep and ranks > DEEP_RANKS)])


def options(draw, seed, fault, sizes):
    spec, _, deep, hosts = fault
    ranks = size(draw, fault, sizes)
    mode = "deep" if deep else draw.choice(("lite", "default", "default", "deep"))
    if mode == "deep" and ranks > DEEP_RANKS:
        mode = "default"
    shape, per_host = layout(draw, ranks, hosts)
    steps = draw.choice((20, 30, 60, 120) if spec.startswith("late:") else (20, 30, 60))
    words = ["--seed", seed, "--ranks", ranks, "--layout", shape, "--ranks-per-host", per_host, "--mode", mode, "--steps", 20 if ranks > 64 else steps,
             "--ops-per-step", draw.choice((40, 80) if steps > 60 else (40, 80, 120)), "--fault", spec]
    if draw.random() < 0.3:
        words.append("--marks")
    return tuple(map(str, words))


class Jobs:
    """Cases with seeds from a base on."""

    def __init__(self, base, sizes):
        self.base, self.sizes, self.number = base, sizes, 0

    def _next(self):
        self.number += 1
        seed = self.base + self.number
        return random.Random(seed), seed

    def each(self, row, faults, count):
        """`count` jobs, the faults in turn."""
        cases = []
        for number in range(count):
            draw, seed = self._next()
            fault = faults[number % len(faults)]
            cases.append(Case(row, fault[0], options(draw, seed, fault, self.sizes)))
        return cases

    def broken_off(self, count):
        cases = []
        for number in range(count):
            draw, seed = self._next()
            hangs = number % 2 == 0
            fault = draw.choice(HANGS if hangs else GO_ON)
            end = ("--hang-seconds", f"{draw.uniform(0.05, 1.5):.2f}") if hangs else ("--end-share", f"{draw.uniform(0.2, 0.95):.2f}")
            cases.append(Case("broken off", fault[0], options(draw, seed, fault, self.sizes) + end))
        return cases

    def rings(self, count):
        """Chunks of 32 KiB that each thread keeps: from the last moments to most of a run."""
        cases = []
        for number in range(count):
            draw, seed = self._next()
            fault = draw.choice(GO_ON if number % 4 == 0 else HANGS)
            cases.append(Case("in a ring", fault[0], options(draw, seed, fault, self.sizes) + ("--ring", draw.choice(("2", "4", "16", "64")))))
        return cases

    def mixed(self, count):
        cases = []
        for number in range(count):
            pair = []
            for _ in range(2):
                draw, seed = self._next()
                fault = draw.choice((FAULTS[0], FAULTS[2], PLAIN_JOB[0], PLAIN_JOB[0]))
                pair.append((fault[0], options(draw, seed, fault, self.sizes)))
            cases.append(Case("two jobs mixed", pair[0][0], pair[0][1], pair[1][1], number % 2 == 0))
        return cases

    def removed(self, count):
        cases = []
        for number in range(count):
            draw, seed = self._next()
            fault = draw.choice(PLAIN_JOB if number % 4 == 0 else [fault for fault in FAULTS + PATTERNS if not fault[0].startswith("evidence-missing")])
            cases.append(Case("evidence removed", fault[0], options(draw, seed, fault, self.sizes), removed=draw.choice((0.05, 0.2, 0.5)), seed=seed))
        return cases


def full(base):
    jobs = Jobs(base, SIZES)
    return [*jobs.each("faults", FAULTS, FAULTY), *jobs.each("late", PATTERNS, LATE), *jobs.each("healthy", PLAIN_JOB, PLAIN),
            *jobs.each("healthy", UNREST, NASTY), *jobs.broken_off(BROKEN), *jobs.mixed(MIXED), *jobs.removed(REMOVED), *jobs.rings(RINGS)]


def quick():
    jobs = Jobs(BASE, QUICK_SIZES)
    faults = [fault for fault in FAULTS[:18] if fault[1] <= max(QUICK_SIZES)]
    return [*jobs.each("faults", faults, len(faults)), *jobs.each("healthy", PLAIN_JOB, 4), *jobs.each("healthy", UNREST, len(UNREST))]
