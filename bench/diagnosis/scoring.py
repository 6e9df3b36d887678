# SPDX-License-Identifier: Apache-2.0
"""What `lockstep diagnose --json` said, against truth.json of the simulated job."""
import dataclasses
import fractions

CANNOT_TELL = "evidence-missing"
# What a finding's id ends with, by pattern. Few ranks and one host are late from a step on.
ID_ENDS = {"every": "", "since": "", "window": ".window", "periodic": ".periodic", "tail": ".tail", "growing": ".growing", "once": ".once"}


@dataclasses.dataclass
class Answer:
    """Of `lockstep diagnose --json`."""
    code: int
    said: dict  # the parsed output; empty if the program failed
    seconds: float

    @property
    def verdict(self):
        return self.said.get("verdict")


@dataclasses.dataclass
class Score:
    """One diagnosed job. None where the question does not arise."""
    table: str
    row: str
    said: str  # class of the verdict, or "healthy", or "failed"
    named: bool  # the right class, or no verdict for a healthy job
    ranks: bool | None = None
    op: bool | None = None
    pattern: bool | None = None
    false_alarm: bool = False    # a verdict about a job that is well and whole
    wrong_culprit: bool = False  # a rank is blamed that is not at fault
    clocks: int = 0        # offsets told
    clocks_wrong: int = 0  # of them, outside their bounds
    half_widths_ns: tuple = ()
    seconds: float = 0.0
    operations: int = 0
    job_ranks: int = 0

    def mistakes(self):
        """The questions that were answered wrongly."""
        return [name for name in ("named", "ranks", "op", "pattern") if getattr(self, name) is False] + \
               [name for name in ("false_alarm", "wrong_culprit", "clocks_wrong") if getattr(self, name)]


def ranks_right(fault, said):
    said, blamed, also = set(said), set(fault["ranks"]), set(fault["also"])
    if not fault["ranks_known"]:
        return None
    if not blamed:
        return said <= also
    if fault["any_of"]:
        return bool(said) and said <= blamed | also
    return blamed <= said <= blamed | also


def op_right(fault, verdict):
    if fault["op_index"] < 0 or not fault["hangs"]:
        return None
    comm = fault["comm"]
    said = str(verdict["comm"] or "").removeprefix("0x")
    return verdict["op_index"] == fault["op_index"] and (said == comm["id"].lstrip("0") or said == comm["id"] or
                                                         said == comm["name"])


def pattern_right(fault, verdict):
    if not fault["pattern"]:
        return None
    return verdict["id"] == verdict["class"] + ID_ENDS[fault["pattern"]]


def is_wrong_culprit(verdict, guilty):
    """`guilty` None: nobody can tell. What says that it cannot tell blames nobody."""
    return bool(verdict) and guilty is not None and verdict["class"] != CANNOT_TELL and not set(verdict["ranks"]) <= set(guilty)


class TrueClock:
    """One host's clock against the first host's: straight through two instants."""

    def __init__(self, host):
        (a, b) = host["instants"]
        self.origin, self.reference_origin = a["host_ns"], a["reference_ns"]
        self.rate = fractions.Fraction(b["reference_ns"] - a["reference_ns"], b["host_ns"] - a["host_ns"])

    def reference_at(self, host_ns):
        return self.reference_origin + (host_ns - self.origin) * self.rate

    def host_at(self, reference_ns):
        return self.origin + (reference_ns - self.reference_origin) / self.rate


def score_clocks(truth, entries, score):
    clocks = {host["boot_id"]: TrueClock(host) for host in truth["clock"]["hosts"]}
    short = {boot.replace("-", ""): clock for boot, clock in clocks.items()}
    find = lambda entry: clocks.get(entry["boot_id"]) or short.get(entry["boot_id"].replace("-", ""))
    reference = next((find(entry) for entry in entries if entry["reference"]), None)
    widths = []
    for entry in entries:
        clock = find(entry)
        if clock is None or reference is None or entry["offset_ns"] is None or clock is reference:
            continue
        at = entry["at_ns"]
        error = entry["offset_ns"] - (at - reference.host_at(clock.reference_at(at)))
        score.clocks += 1
        score.clocks_wrong += abs(error) > entry["half_width_ns"]
        widths.append(entry["half_width_ns"])
    score.half_widths_ns = tuple(widths)


def guilty(fault):
    if fault is None:
        return ()
    return fault["ranks"] + fault["also"] if fault["ranks_known"] else None


def score_whole(truth, answer, score):
    """All evidence is there: the verdict is the fault, or there is none."""
    fault, verdict = truth["fault"], answer.verdict
    score.false_alarm = fault is None and verdict is not None
    score.named = score.said in fault["classes"] if fault else verdict is None
    if fault and score.named:
        score.ranks, score.op, score.pattern = ranks_right(fault, verdict["ranks"]), op_right(fault, verdict), pattern_right(fault, verdict)
    elif fault:
        # A wrong class blames nobody rightly.
        score.ranks = False if ranks_right(fault, []) is not None else None
        score.op = False if fault["hangs"] and fault["op_index"] >= 0 else None
        score.pattern = False if fault["pattern"] else None
    score.wrong_culprit = is_wrong_culprit(verdict, guilty(fault))


def score_broken_off(truth, answer, score):
    """All processes ended at one moment without closing their files: that there is no problem cannot be told."""
    fault, verdict = truth["fault"], answer.verdict
    classes = [CANNOT_TELL] + (fault["classes"] if fault else [])
    if "rank-dead" in classes:
        classes.append("never-joined")  # heartbeats come once a second: who was dead first is not in the files
    score.named = score.said in classes
    score.wrong_culprit = is_wrong_culprit(verdict, guilty(fault))


def score_in_a_ring(truth, answer, score):
    """The older part of every rank is gone: what is left may not tell, and what it tells is right."""
    fault, verdict = truth["fault"], answer.verdict
    score.named = score.said in ([CANNOT_TELL] + fault["classes"] if fault and fault["hangs"] else
                                 [CANNOT_TELL, "healthy"] + (fault["classes"] if fault else []))
    score.wrong_culprit = is_wrong_culprit(verdict, guilty(fault))


def score_mixed(truth, answer, score):
    """Files of two jobs are no evidence of one."""
    score.named = answer.code == 3 and score.said == CANNOT_TELL
    score.wrong_culprit = is_wrong_culprit(answer.verdict, [*guilty(truth["fault"]), *guilty(truth["other_fault"])])


def score_removed(truth, answer, score, gone):
    """Some ranks' files are gone: what is left may show the fault, else it must be said that they are missing."""
    fault, verdict = truth["fault"], answer.verdict
    classes = {CANNOT_TELL} | set(fault["classes"] if fault else ())
    if fault and fault["hangs"]:
        classes |= {"rank-unreachable", "too-many-failed"}
    score.named = score.said in classes
    known = guilty(fault)
    if fault and score.said == "slow-link" and set(classes) & {"slow-nic", "fallback"} and set(verdict["ranks"]) & set(known or verdict["ranks"]):
        score.named = True  # one pair of a slow card may be all that is left to be seen
        return
    score.wrong_culprit = is_wrong_culprit(verdict, None if known is None else [*known, *gone, *(undecided(fault, gone) if fault else ())])


def undecided(fault, gone):
    """Of ranks that disagree, the two that are left: nothing tells which of them is wrong."""
    left = set(fault["comm"]["ranks"]) - set(gone) if "joined-other-op" in fault["classes"] else ()
    return left if len(left) == 2 else ()


def row_of(case, truth):
    """Of a table: the class of a fault, the name of a scenario."""
    fault = truth["fault"]
    if case.row == "faults":
        return fault["class"]
    if case.row in ("late", "healthy"):
        return case.fault
    if case.row in ("broken off", "in a ring"):
        return f"{case.row}, " + ("hanging" if fault and fault["hangs"] else "late" if fault else "healthy")
    if case.row == "evidence removed":
        return f"evidence removed, {'faulty' if fault else 'healthy'}"
    return case.row


def score(case, truth, answer, gone):
    """`gone`: ranks whose files were taken away."""
    verdict = answer.verdict
    said = "failed" if not answer.said else verdict["class"] if verdict else "healthy"
    result = Score(case.row, row_of(case, truth), said, False, seconds=answer.seconds, job_ranks=truth["ranks"], operations=truth["ops"])
    if not answer.said:
        return result
    if case.row == "broken off":
        score_broken_off(truth, answer, result)
    elif case.row == "in a ring":
        score_in_a_ring(truth, answer, result)
    elif case.row == "two jobs mixed":
        score_mixed(truth, answer, result)
    elif case.row == "evidence removed":
        score_removed(truth, answer, result, gone)
    else:
        score_whole(truth, answer, result)
    if not case.other:
        score_clocks(truth, answer.said["clock"], result)
    return result


