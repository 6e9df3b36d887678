# SPDX-License-Identifier: Apache-2.0
"""What is right to say of a job that is watched while it misbehaves, and what was said."""
import dataclasses

# The classes that are right once the fault has begun; none: nothing may be said.
EXPECTED = {
    "none": (), "healthy": (), "sharded": (),
    "sleep": ("never-joined",), "other-op": ("joined-other-op",), "slow": ("host-late",), "kill": ("rank-dead",), "stop": ("never-joined",),
    "pause": ("host-late",), "starved": ("host-late",), "periodic": ("host-late",), "growing": ("host-late",), "uneven-eval": ("gpu-late",),
    "slow-gpu": ("gpu-late",),
}
SOON_S = 10


@dataclasses.dataclass(frozen=True)
class Said:
    """One answer of `lockstep diagnose --json`; `time` is when it was asked."""
    time: float
    verdict: dict | None
    cost: float = 0.0
    error: str = ""

    @property
    def named(self):
        """Ranks that it blames: what cannot tell, or blames nobody, has none."""
        return [] if self.verdict is None or self.verdict["class"] == "evidence-missing" else self.verdict["ranks"]


def culprits(fault, ranks):
    """Of two ranks in different operations nothing tells which is wrong: both are named."""
    if not EXPECTED[fault]:
        return []
    return [0, 1] if fault == "other-op" and ranks == 2 else [ranks - 1]


def is_right(fault, ranks, said):
    return said.verdict is not None and said.verdict["class"] in EXPECTED[fault] and said.named == culprits(fault, ranks)


def is_wrong_name(fault, ranks, onset, said):
    """Somebody innocent is blamed, or anybody before the fault has begun."""
    guilty = culprits(fault, ranks) if onset is not None and said.time >= onset else []
    return not set(said.named) <= set(guilty)


def judge(fault, ranks, onset, answers):
    """`onset` None: it has not begun. `answers` in the order of asking."""
    first = next((said for said in answers if onset is not None and said.time >= onset and is_right(fault, ranks, said)), None)
    until = answers if first is None else answers[:answers.index(first)]
    wrong = [said for said in until if is_wrong_name(fault, ranks, onset, said)]
    seconds = None if first is None else round(first.time + first.cost - onset, 2)
    found = seconds is not None and seconds <= SOON_S if EXPECTED[fault] else all(not said.named for said in answers)
    return {"right": found and not wrong and not any(said.error for said in answers), "seconds": seconds, "statement": first and first.verdict["statement"],
            "wrong_names": [{"class": said.verdict["class"], "ranks": said.named, "after_onset": onset is not None and round(said.time - onset, 2),
                             "statement": said.verdict["statement"]} for said in wrong],
            "errors": [said.error for said in answers if said.error]}


def table(results):
    """By fault and mode, a line of Markdown each."""
    lines = ["| Fault | Mode | Runs | Asked | Right | Seconds to the name, median | most | Runs with a wrong name |", "|---|---|---|---|---|---|---|---|"]
    for fault, mode in dict.fromkeys((result["fault"], result["mode"]) for result in results):
        group = [result for result in results if (result["fault"], result["mode"]) == (fault, mode)]
        seconds = sorted(result["seconds"] for result in group if result["seconds"] is not None)
        middle = (f"{seconds[len(seconds) // 2]:.1f}", f"{seconds[-1]:.1f}") if seconds else ("—", "—")
        lines.append(f"| {fault} | {mode} | {len(group)} | {sum(result['asked'] for result in group)} | {sum(result['right'] for result in group)} | {middle[0]} | {middle[1]} | "
                     f"{sum(bool(result['wrong_names']) for result in group)} |")
    return "\n".join(lines)
