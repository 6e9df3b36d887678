# SPDX-License-Identifier: Apache-2.0
"""What `lockstep diagnose --json` said, against truth.json of the simulated job."""
import collections
import dataclasses
import fractions
import statistics


@dataclasses.dataclass
class Score:
    """One diagnosed job. None where the question does not arise."""
    expected: str  # class, or "healthy"
    said: str      # class of the verdict, or "healthy", or "failed"
    named: bool    # the right class, or no verdict for a healthy job
    ranks: bool | None = None
    op: bool | None = None
    clocks: int = 0       # offsets told
    clocks_wrong: int = 0  # of them, outside their bounds
    half_widths_ns: tuple = ()
    seconds: float = 0.0
    operations: int = 0
    job_ranks: int = 0


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


def score(truth, answer, seconds):
    """`answer` is the parsed output; None if the program failed."""
    fault = truth["fault"]
    expected = fault["class"] if fault else "healthy"
    if answer is None:
        return Score(expected, "failed", False, seconds=seconds, job_ranks=truth["ranks"], operations=truth["ops"])
    verdict = answer["verdict"]
    said = verdict["class"] if verdict else "healthy"
    result = Score(expected, said, said in fault["classes"] if fault else verdict is None, seconds=seconds,
                   job_ranks=truth["ranks"], operations=truth["ops"])
    if fault and result.named:
        result.ranks = ranks_right(fault, verdict["ranks"])
        result.op = op_right(fault, verdict)
    elif fault:
        # A wrong class blames nobody rightly.
        result.ranks = False if ranks_right(fault, []) is not None else None
        result.op = False if fault["hangs"] and fault["op_index"] >= 0 else None
    score_clocks(truth, answer["clock"], result)
    return result


def share(values):
    values = [value for value in values if value is not None]
    return f"{sum(values)}/{len(values)}" if values else "—"


def class_rows(scores):
    groups = collections.defaultdict(list)
    for one in scores:
        groups[one.expected].append(one)
    said = collections.Counter(one.said for one in scores)
    rows = []
    for name in sorted(groups, key=lambda name: (name == "healthy", name)):
        group = groups[name]
        right = sum(one.named for one in scores if one.said == name)
        rows.append((name, len(group), share([one.named for one in group]), share([one.ranks for one in group]),
                     share([one.op for one in group]), f"{right}/{said[name]}" if said[name] else "—"))
    return rows


def table(header, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def report(scores):
    """Two tables of Markdown: by class, and as a whole."""
    faulty = [one for one in scores if one.expected != "healthy"]
    healthy = [one for one in scores if one.expected == "healthy"]
    widths = sorted(width for one in scores for width in one.half_widths_ns)
    clocks, wrong = sum(one.clocks for one in scores), sum(one.clocks_wrong for one in scores)
    seconds = [one.seconds for one in scores]
    slowest = max(scores, key=lambda one: one.seconds)
    by_class = table(("Class", "Jobs", "Class right", "Ranks right", "Operation right", "Of such verdicts, right"),
                     class_rows(scores))
    whole = table(("Question", "Answer"), [
        ("Faulty jobs whose class is right", share([one.named for one in faulty])),
        ("of which the ranks are right, where the files can tell", share([one.ranks for one in faulty])),
        ("of which communicator and index are right, where there is one", share([one.op for one in faulty])),
        ("Healthy jobs with a false alarm", f"{sum(not one.named for one in healthy)}/{len(healthy)}"),
        ("Clock offsets within their stated bounds", f"{clocks - wrong}/{clocks}"),
        ("Half-width of those bounds, median", f"{statistics.median(widths) / 1000:.1f} us" if widths else "—"),
        ("Seconds to the verdict, median", f"{statistics.median(seconds):.2f}"),
        ("Seconds to the verdict, most", f"{slowest.seconds:.2f} ({slowest.job_ranks} ranks, "
                                         f"{slowest.operations:,} operations)"),
    ])
    return by_class + "\n" + whole
