#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a report's data against docs/report-data.md: keys, types, limits, and that what refers to something finds it.

Usage: tests/report/check_report_data.py FILE...    (FILE: what `lockstep report --json` prints; - is stdin)
"""
import json
import sys

EXACT = 2 ** 53
WHOLE, NUMBER, TEXT, FLAG = "whole number", "number", "text", "true or false"


class Maybe:
    """null is allowed."""

    def __init__(self, shape):
        self.shape = shape


class ListOf:
    def __init__(self, shape, most=None):
        self.shape, self.most = shape, most


class Columns:
    """Lists of equal length."""

    def __init__(self, most, **columns):
        self.columns, self.most = columns, most


class Page:
    """The page, or {"missing": why}."""

    def __init__(self, shape):
        self.shape = shape


class OneOf:
    def __init__(self, *words):
        self.words = words


class Counts:
    """Any keys, whole numbers."""


COLUMNS, ROWS, STEPS = 300, 256, 300
NOTES = ListOf(TEXT)
RANKS = {"label": TEXT, "who": Maybe(WHOLE), "ranks": TEXT, "of": WHOLE, "named": FLAG, "aligned": FLAG}
PARTS = {key: Maybe(WHOLE) for key in ("length_ns", "computing_ns", "hidden_ns", "exposed_ns", "copying_ns", "idle_ns")}
CELLS = ("waiting_ns", "late_ns", "blamed_ns", "ops")
GROUP_CELLS = ("late_min_ns", "late_max_ns", "waiting_min_ns", "waiting_max_ns", "worst")

COMPARED = {"path": TEXT, "evidence": TEXT, "processes": WHOLE, "steps_by": OneOf("marks", "period", "operations", "none"),
            "lost_events": WHOLE, "losses": NOTES}
RATIO = {"ratio": Maybe(NUMBER), "low": Maybe(NUMBER), "high": Maybe(NUMBER)}
COMPARISON = {
    "a": COMPARED, "b": COMPARED,
    "verdict": {"state": OneOf("same", "faster", "slower", "cannot tell"), "headline": TEXT, "cause": Maybe(WHOLE)},
    "step_ns": Maybe(WHOLE), "tested": WHOLE, "false_share": NUMBER, "least_change": NUMBER, "least_steps": WHOLE,
    "rows": ListOf({"metric": TEXT, "level": OneOf("job", "func", "size", "comm", "rank"), "label": TEXT, "func": Maybe(TEXT),
                    "size_from_bytes": Maybe(WHOLE), "size_to_bytes": Maybe(WHOLE), "comm": Maybe(TEXT), "rank": Maybe(WHOLE),
                    "time": Maybe(TEXT), "classes": WHOLE, "repeats": FLAG, "ops_a": WHOLE, "ops_b": WHOLE, "steps_a": WHOLE,
                    "steps_b": WHOLE, "a_gbps": Maybe(NUMBER), "b_gbps": Maybe(NUMBER), "a_ns": Maybe(WHOLE), "b_ns": Maybe(WHOLE),
                    **RATIO, "p": Maybe(NUMBER), "change": OneOf("worse", "better", "none", "cannot tell"), "cost_ns": Maybe(WHOLE),
                    "since": Maybe({"from_begin": FLAG, "step": WHOLE, "at_ns": Maybe(WHOLE), "until_step": Maybe(WHOLE),
                                    "until_ns": Maybe(WHOLE), **RATIO}),
                    "reason": Maybe(TEXT)}, 300),
    "omitted": WHOLE, "notes": NOTES}

OPERATION = {
    "comm": WHOLE, "op_index": WHOLE, "func": TEXT, "kind": OneOf("collective", "send/receive"), "title": TEXT, "open": FLAG, "datatype": Maybe(TEXT),
    "count": WHOLE, "size_bytes": WHOLE, "algo": Maybe(TEXT), "proto": Maybe(TEXT), "channels": Maybe(WHOLE), "root": Maybe(WHOLE),
    "why": ListOf(OneOf("finding", "lost", "sample")), "findings": ListOf(WHOLE), "begin_ns": Maybe(WHOLE), "length_ns": Maybe(WHOLE),
    "last_arrival_ns": Maybe(WHOLE), "lost_ns": Maybe(WHOLE), "busbw_gbps": Maybe(NUMBER), "called": WHOLE, "omitted": WHOLE,
    "ranks": Columns(
        256, who=Maybe(WHOLE), comm_rank=Maybe(WHOLE),
        state=OneOf("done", "called", "running", "not called", "forgotten", "no file", "not comparable"), called_ns=Maybe(WHOLE),
        enqueued_ns=Maybe(WHOLE), launched_ns=Maybe(WHOLE), gpu_start_ns=Maybe(WHOLE), gpu_end_ns=Maybe(WHOLE), arrival_ns=Maybe(WHOLE),
        late_ns=Maybe(WHOLE), waiting_ns=Maybe(WHOLE), moving_ns=Maybe(WHOLE), clock_error_ns=Maybe(WHOLE), gpu_error_ns=Maybe(WHOLE),
        gpu_source=Maybe(TEXT), aligned=WHOLE, named=WHOLE),
    "rest": Maybe({key: Maybe(ListOf(Maybe(WHOLE), 3)) for key in ("waiting_ns", "late_ns", "moving_ns")}),
}
DOCUMENT = {
    "version": WHOLE, "tool": {"name": TEXT, "version": TEXT}, "live": FLAG, "refresh_ns": Maybe(WHOLE),
    "run": {
        "title": TEXT, "paths": ListOf(TEXT), "begin": Maybe(TEXT), "begin_ns": Maybe(TEXT), "length_ns": Maybe(WHOLE),
        "least_length_ns": Maybe(WHOLE), "made": TEXT,
        "evidence": ListOf({"source": TEXT, "sentence": TEXT, "processes": Maybe(WHOLE), "ops": Maybe(WHOLE), "first_ns": Maybe(WHOLE),
                            "last_ns": Maybe(WHOLE)}),
        "main": Maybe(WHOLE), "seen": ListOf(TEXT), "not_seen": ListOf(TEXT), "alive": TEXT},
    "diagnosis": None,
    "who": Columns(None, rank=Maybe(WHOLE), host=WHOLE, pid=WHOLE, device=Maybe(WHOLE), name=TEXT, text=TEXT),
    "hosts": ListOf({"name": TEXT, "boot_id": Maybe(TEXT), "who": ListOf(WHOLE), "reference": FLAG, "aligned": FLAG, "offset_ns": Maybe(WHOLE),
                     "half_width_ns": Maybe(WHOLE), "contradictions": WHOLE}),
    "comms": ListOf({"name": TEXT, "text": TEXT, "show": Maybe(TEXT), "id": Maybe(TEXT), "ranks": Maybe(WHOLE), "nodes": Maybe(WHOLE), "present": WHOLE, "matched": WHOLE,
                     "unmatched": Counts(), "ops": WHOLE, "declared": FLAG, "waiting_ns": Maybe(WHOLE), "moving_ns": Maybe(WHOLE),
                     "blamed_ns": Maybe(WHOLE)}),
    "verdict": {
        "state": OneOf("healthy", "problem", "cannot tell"), "headline": TEXT, "finding": Maybe(WHOLE),
        "cards": ListOf({"title": TEXT, "what": Maybe(TEXT), "class": TEXT, "effect": Maybe(TEXT), "comm": Maybe(WHOLE), "operation": Maybe(WHOLE),
                         "who": ListOf(WHOLE), "waiting": ListOf(WHOLE), "rows": ListOf(WHOLE), "at_ns": Maybe(WHOLE)}),
        "losses": ListOf({"text": TEXT, "count": WHOLE, "stage": TEXT, "kind": TEXT, "source": Maybe(TEXT), "who": ListOf(WHOLE, 64)}),
        "lost_events": WHOLE},
    "lateness": Page({
        "columns": {"count": WHOLE, "begin_ns": Maybe(WHOLE), "width_ns": WHOLE}, "times": OneOf("gpu", "host", "mixed"), "compared": WHOLE,
        "rows": ListOf({**RANKS, "total": {"ops": WHOLE, "timed": WHOLE, "waiting_ns": Maybe(WHOLE), "moving_ns": Maybe(WHOLE),
                                           "blamed_ns": Maybe(WHOLE), "late_p50_ns": Maybe(WHOLE), "late_p99_ns": Maybe(WHOLE)},
                        **{key: ListOf(Maybe(WHOLE), COLUMNS) for key in CELLS},
                        **{"?" + key: ListOf(Maybe(WHOLE), COLUMNS) for key in GROUP_CELLS}}, ROWS),
        "drill": Columns(12_000, row=WHOLE, column=WHOLE, comm=WHOLE, op_index=WHOLE, who=WHOLE, late_ns=Maybe(WHOLE), waiting_ns=Maybe(WHOLE),
                         at_ns=Maybe(WHOLE), operation=Maybe(WHOLE)),
        "marks": ListOf({"number": WHOLE, "at_ns": Maybe(WHOLE)}, 300), "notes": NOTES}),
    "operations": Page({"total": WHOLE, "list": ListOf(OPERATION, 64), "notes": NOTES}),
    "bandwidth": Page({
        "rates": ListOf({"comm": WHOLE, "func": TEXT, "algo": Maybe(TEXT), "proto": Maybe(TEXT), "ranks": WHOLE, "hosts": WHOLE, "pairs": FLAG,
                         "size_from_bytes": WHOLE, "size_to_bytes": WHOLE, "ops": WHOLE, "uncertain": WHOLE,
                         **{key: Maybe(NUMBER) for key in ("algbw_gbps", "busbw_gbps", "busbw_low_gbps", "busbw_high_gbps", "of_best", "ceiling_gbps")},
                         "link": Maybe(TEXT), "error": NUMBER, "finding": Maybe(WHOLE),
                         "slowest": Maybe({"op_index": WHOLE, "busbw_gbps": NUMBER, "at_ns": Maybe(WHOLE), "operation": Maybe(WHOLE)})}, 2000),
        "fits": ListOf({"comm": WHOLE, "func": TEXT, "sizes": WHOLE, "alpha_ns": NUMBER, "alpha_error_ns": NUMBER, "beta_gbps": NUMBER,
                        "beta_low_gbps": NUMBER, "beta_high_gbps": Maybe(NUMBER)}, 2000),
        "matched": WHOLE, "untimed": WHOLE, "omitted": WHOLE, "notes": NOTES}),
    "topology": Page({
        "hosts": ListOf({"name": TEXT, "gpus": ListOf({"who": WHOLE, "rank": Maybe(WHOLE), "device": Maybe(WHOLE),
                                                       "pci": Maybe(TEXT), "model": Maybe(TEXT), "named": FLAG}, 1024), "omitted": WHOLE}),
        "comms": ListOf({"comm": WHOLE, "name": TEXT, "nodes": Maybe(WHOLE), "members": ListOf(Maybe(WHOLE), 1024),
                         "rings": ListOf({"channels": ListOf(WHOLE), "order": ListOf(Maybe(WHOLE))}),
                         "trees": ListOf({"channels": ListOf(WHOLE), "up": ListOf(Maybe(WHOLE))})}, 64),
        "edges": ListOf({"from": WHOLE, "to": WHOLE, "comm": Maybe(WHOLE), "transport": Maybe(TEXT), "via": Maybe(TEXT), "gdr": Maybe(FLAG),
                         "channels": Maybe(WHOLE), "bytes": Maybe(WHOLE), "rate_gbps": Maybe(NUMBER), "wait_ns": Maybe(WHOLE), "slow": Maybe(WHOLE),
                         "source": OneOf("logs", "transfers", "logs and transfers", "sends")}, 4096),
        "rings_missing": Maybe(TEXT), "omitted": WHOLE, "notes": NOTES}),
    "network": Page({
        "axis": ListOf({"label": TEXT, "who": Maybe(WHOLE), "of": WHOLE}), "by": OneOf("rank", "host"),
        "pairs": ListOf({"source": WHOLE, "target": WHOLE, "comm": Maybe(WHOLE), "transfers": WHOLE, "bytes": WHOLE,
                         **{key: Maybe(WHOLE) for key in ("gpu_wait_ns", "peer_wait_ns", "send_wait_ns", "receive_wait_ns", "flush_wait_ns",
                                                          "sending_p50_ns", "sending_p99_ns")},
                         "rate_gbps": Maybe(NUMBER), "transport": Maybe(TEXT), "finding": Maybe(WHOLE)}, 4096),
        "omitted": WHOLE, "notes": NOTES}),
    "steps": Page({
        "source": OneOf("marks", "period", "parts"), "figures": {f"{of}{share}_ns": Maybe(WHOLE) for of in ("", "exposed_", "exposed_at_most_") for share in ("p50", "p99")},
        "period_ops": Maybe(WHOLE),
        "list": Columns(STEPS, number=WHOLE, steps=WHOLE, begin_ns=Maybe(WHOLE), length_ns=Maybe(WHOLE), lost_ns=Maybe(WHOLE), worst=Maybe(WHOLE)),
        "split": Page({"rows": ListOf({**RANKS, "entries": Columns(STEPS, number=WHOLE, steps=WHOLE, begin_ns=Maybe(WHOLE), **PARTS)}, ROWS),
                       "average": ListOf({"who": WHOLE, "steps": Maybe(WHOLE), "whole": FLAG, **PARTS}, ROWS), "omitted": WHOLE}),
        "notes": NOTES}),
    "processes": {
        "rows": ListOf({"who": WHOLE, "rank": Maybe(WHOLE), "host": WHOLE, "pid": WHOLE, "captured": FLAG, "gpu_model": Maybe(TEXT),
                        "pci": Maybe(TEXT), "device": Maybe(WHOLE), "nccl": Maybe(TEXT), "mode": TEXT, "state": OneOf("closed", "not closed"),
                        "liveness": OneOf("unknown", "running", "stopped", "gone"), "first_ns": Maybe(WHOLE), "last_ns": Maybe(WHOLE),
                        "heartbeat_ns": Maybe(WHOLE), "ops": WHOLE, "lost": WHOLE, "comms": WHOLE, "open": Maybe(TEXT), "named": FLAG,
                        "argv": Maybe(TEXT)}, ROWS),
        "omitted": WHOLE,
        "losses": ListOf({"who": Maybe(WHOLE), "stage": TEXT, "kind": TEXT, "count": WHOLE, "detail": TEXT, "source": Maybe(TEXT)}, 1000),
        "notes": NOTES},
    "?comparison": COMPARISON,
}


class Checker:
    def __init__(self):
        self.problems = []

    def say(self, where, what):
        if len(self.problems) < 50:
            self.problems.append(f"{where}: {what}")

    def check(self, where, value, shape):
        if shape is None:
            return
        if isinstance(shape, Maybe):
            if value is not None:
                self.check(where, value, shape.shape)
        elif isinstance(shape, Page):
            self.page(where, value, shape)
        elif isinstance(shape, ListOf):
            self.list(where, value, shape)
        elif isinstance(shape, Columns):
            self.columns(where, value, shape)
        elif isinstance(shape, OneOf):
            if value not in shape.words:
                self.say(where, f"{value!r} is none of {shape.words}")
        elif isinstance(shape, Counts):
            for key, count in value.items():
                self.leaf(f"{where}.{key}", count, WHOLE)
        elif isinstance(shape, dict):
            self.object(where, value, shape)
        else:
            self.leaf(where, value, shape)

    def page(self, where, value, shape):
        if isinstance(value, dict) and "missing" in value:
            if list(value) != ["missing"] or not isinstance(value["missing"], str) or not value["missing"].endswith("."):
                self.say(where, "missing is not one sentence alone")
            return
        self.check(where, value, shape.shape)

    def list(self, where, value, shape):
        if not isinstance(value, list):
            return self.say(where, "is no list")
        if shape.most is not None and len(value) > shape.most:
            self.say(where, f"has {len(value)} entries, more than {shape.most}")
        for i, item in enumerate(value):
            self.check(f"{where}[{i}]", item, shape.shape)

    def columns(self, where, value, shape):
        self.object(where, value, {name: ListOf(of, shape.most) for name, of in shape.columns.items()})
        if len({len(column) for column in value.values()}) > 1:
            self.say(where, "columns differ in length: " + str({name: len(column) for name, column in value.items()}))

    def object(self, where, value, shape):
        if not isinstance(value, dict):
            return self.say(where, "is no object")
        known = {key.lstrip("?") for key in shape}
        for key in value:
            if key not in known:
                self.say(where, f"has {key!r}, which the page does not name")
        for key, of in shape.items():
            name = key.lstrip("?")
            if name in value:
                self.check(f"{where}.{name}", value[name], of)
            elif key == name:
                self.say(where, f"lacks {name!r}")

    def leaf(self, where, value, kind):
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        fits = {WHOLE: is_whole, NUMBER: is_whole or isinstance(value, float), TEXT: isinstance(value, str), FLAG: isinstance(value, bool)}[kind]
        if not fits:
            return self.say(where, f"{value!r} is no {kind}")
        if is_whole and where.endswith("_ns") and abs(value) >= EXACT:
            self.say(where, f"{value} does not fit a double")
        if kind == TEXT and (len(value.encode()) > 1024 + 200 or any(ord(c) < 32 or ord(c) == 127 for c in value)) and ".diagnosis" not in where:
            self.say(where, "is too long, or holds control characters")


def references(document, say):
    """What is a position must be one."""
    whos, comms, findings = len(document["who"]["rank"]), len(document["comms"]), len((document["diagnosis"] or {"findings": []})["findings"])
    operations = len(document["operations"].get("list", []))
    rows = len(document["lateness"].get("rows", []))
    limits = {"who": whos, "worst": whos, "from": whos, "to": whos, "comm": comms, "finding": findings, "slow": findings, "findings": findings,
              "operation": operations, "rows": rows, "row": rows, "host": len(document["hosts"])}

    def walk(where, value):
        if isinstance(value, list):
            for item in value:
                walk(where, item)
        elif isinstance(value, dict):
            for key, item in value.items():
                numbers = item if isinstance(item, list) else [item]
                if key in limits and all(number is None or isinstance(number, int) for number in numbers):
                    for number in numbers:
                        if number is not None and not 0 <= number < limits[key]:
                            say(f"{where}.{key}", f"{number} is no position among {limits[key]}")
                walk(f"{where}.{key}", item)

    for key, value in document.items():
        if key != "diagnosis":
            walk(key, value)


def check(document):
    """What is wrong with it: sentences."""
    checker = Checker()
    checker.check("data", document, DOCUMENT)
    if checker.problems:
        return checker.problems
    if document["version"] != 2:
        checker.say("data.version", "is not 2")
    lateness = document["lateness"]
    for i, row in enumerate(lateness.get("rows", [])):
        for key in CELLS + GROUP_CELLS:
            if key in row and len(row[key]) != lateness["columns"]["count"]:
                checker.say(f"lateness.rows[{i}].{key}", "has not one entry for each column")
        if (row["who"] is None) != ("worst" in row):
            checker.say(f"lateness.rows[{i}]", "is a group without being one")
    if document["diagnosis"] is not None and len(document["verdict"]["cards"]) != len(document["diagnosis"]["findings"]):
        checker.say("verdict.cards", "not one for each finding")
    references(document, checker.say)
    return checker.problems


def main():
    bad = 0
    for path in sys.argv[1:]:
        with (sys.stdin if path == "-" else open(path, encoding="utf-8")) as file:
            problems = check(json.load(file))
        for problem in problems:
            print(f"{path}: {problem}")
        bad += bool(problems)
    sys.exit(1 if bad or len(sys.argv) < 2 else 0)


if __name__ == "__main__":
    main()
