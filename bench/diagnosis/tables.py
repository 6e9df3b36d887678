# SPDX-License-Identifier: Apache-2.0
"""The scores of all jobs as tables of Markdown."""
import collections
import statistics

COMMON = ("Wrong culprit", "False alarms")


def share(values):
    values = [value for value in values if value is not None]
    return f"{sum(values)}/{len(values)}" if values else "—"


def table(header, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def grouped(scores):
    groups = collections.defaultdict(list)
    for one in scores:
        groups[one.row].append(one)
    return groups.items()


def counted(group):
    return sum(one.wrong_culprit for one in group), sum(one.false_alarm for one in group)


def faults(scores, every):
    """`every`: the scores of all tables that ask for a class; a verdict of a class may be undeserved in any."""
    said = collections.Counter(one.said for one in every)
    rows = []
    for name, group in sorted(grouped(scores)):
        right = sum(one.named for one in every if one.said == name)
        rows.append((name, len(group), share([one.named for one in group]), share([one.ranks for one in group]), share([one.op for one in group]),
                     f"{right}/{said[name]}" if said[name] else "—", *counted(group)))
    return table(("Class", "Jobs", "Class right", "Ranks right", "Operation right", "Of such verdicts, right", *COMMON), rows)


def late(scores):
    rows = [(name, len(group), share([one.named for one in group]), share([one.ranks for one in group]), share([one.pattern for one in group]),
             *counted(group)) for name, group in grouped(scores)]
    return table(("Lateness", "Jobs", "Class right", "Ranks right", "Pattern right", *COMMON), rows)


def others(title, scores):
    rows = [(name, len(group), share([one.named for one in group]), *counted(group)) for name, group in grouped(scores)]
    return table((title, "Jobs", "Right", *COMMON), rows)


def whole(scores):
    faulty = [one for one in scores if one.table in ("faults", "late")]
    healthy = [one for one in scores if one.table == "healthy"]
    widths = sorted(width for one in scores for width in one.half_widths_ns)
    clocks, wrong = sum(one.clocks for one in scores), sum(one.clocks_wrong for one in scores)
    seconds = [one.seconds for one in scores]
    slowest = max(scores, key=lambda one: one.seconds)
    return table(("Question", "Answer"), [
        ("Faulty jobs whose class is right", share([one.named for one in faulty])),
        ("of which the ranks are right, where the files can tell", share([one.ranks for one in faulty])),
        ("of which communicator and index are right, where there is one", share([one.op for one in faulty])),
        ("of which the pattern is right, where there is one", share([one.pattern for one in faulty])),
        ("Healthy jobs with a false alarm", f"{sum(one.false_alarm for one in healthy)}/{len(healthy)}"),
        ("Jobs of all kinds in which a rank is blamed that is not at fault", f"{sum(one.wrong_culprit for one in scores)}/{len(scores)}"),
        ("Clock offsets within their stated bounds", f"{clocks - wrong}/{clocks}"),
        ("Half-width of those bounds, median", f"{statistics.median(widths) / 1000:.1f} us" if widths else "—"),
        ("Seconds to the verdict, median", f"{statistics.median(seconds):.2f}"),
        ("Seconds to the verdict, most", f"{slowest.seconds:.2f} ({slowest.job_ranks} ranks, {slowest.operations:,} operations)"),
    ])


EVIDENCE = ("broken off", "in a ring", "two jobs mixed", "evidence removed")


def report(scores):
    of = lambda *names: [one for one in scores if one.table in names]
    parts = [faults(of("faults"), of("faults", "late", "healthy")) if of("faults") else "",
             late(of("late")) if of("late") else "",
             others("Healthy job", of("healthy")) if of("healthy") else "",
             others("Evidence", of(*EVIDENCE)) if of(*EVIDENCE) else "",
             whole(scores)]
    return "\n".join(part for part in parts if part)
