#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a report's data against its schema and docs/report-data.md: keys, types, limits, and that what refers to something finds it.

Usage: tests/report/check_report_data.py FILE...    (FILE: what `lockstep report --json` prints; - is stdin)
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from json_schema import Schemas  # noqa: E402

EXACT = 2 ** 53
MOST_TEXT = 1024 + 200
COMPARED_ROWS = 300
CELLS = ("waiting_ns", "late_ns", "blamed_ns", "ops")
TEXT_COLUMNS = ("gpu_model", "pci", "nccl", "mode", "argv", "liveness", "open")
GROUP_CELLS = ("late_min_ns", "late_max_ns", "waiting_min_ns", "waiting_max_ns", "worst")
SCHEMAS = Schemas(HERE.parents[1] / "docs/schemas")


def leaves(where, key, value):
    """(where, key, value) of everything that is no object and no list; `diagnosis` has rules of its own."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name != "diagnosis":
                yield from leaves(f"{where}.{name}", name, one)
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from leaves(f"{where}[{i}]", key, one)
    else:
        yield where, key, value


def texts_and_times(document, say):
    for where, key, value in leaves("data", "", document):
        if isinstance(value, int) and key.endswith("_ns") and abs(value) >= EXACT:
            say(where, f"{value} does not fit a double")
        if isinstance(value, str) and (len(value.encode()) > MOST_TEXT or any(ord(c) < 32 or ord(c) == 127 for c in value)):
            say(where, "is too long, or holds control characters")
        if key == "missing" and not value.endswith("."):
            say(where, "is no sentence")


def columns(document, say):
    """Objects of lists, which are columns of one table."""
    processes = document["processes"]["list"]
    tables = [("who and processes.list", {**document["who"], **(processes or {})}), ("lateness.totals", {"who": document["who"]["rank"], **document["lateness"].get("totals", {"who": document["who"]["rank"]})}), ("lateness.drill", document["lateness"].get("drill", {})), ("steps.list", document["steps"].get("list", {}))]
    tables += [(f"operations.list[{i}].ranks", one["ranks"]) for i, one in enumerate(document["operations"].get("list", []))]
    tables += [(f"steps.split.rows[{i}].entries", row["entries"]) for i, row in enumerate(document["steps"].get("split", {}).get("rows", []))]
    for where, table in tables:
        if len({len(column) for column in table.values()}) > 1:
            say(where, "columns differ in length: " + str({name: len(column) for name, column in table.items()}))


def references(document, say):
    """What is a position must be one."""
    whos, comms, findings = len(document["who"]["rank"]), len(document["comms"]), len((document["diagnosis"] or {"findings": []})["findings"])
    operations = len(document["operations"].get("list", []))
    rows = len(document["lateness"].get("rows", []))
    texts = len(document["processes"]["texts"])
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
    for key in TEXT_COLUMNS:
        for number in (document["processes"]["list"] or {key: []})[key]:
            if number is not None and not 0 <= number < texts:
                say(f"processes.list.{key}", f"{number} is no position among {texts} texts")


def rows_of_lateness(lateness, say):
    for i, row in enumerate(lateness.get("rows", [])):
        for key in CELLS + GROUP_CELLS:
            if key in row and len(row[key]) != lateness["columns"]["count"]:
                say(f"lateness.rows[{i}].{key}", "has not one entry for each column")
        if len({row["who"] is None, "worst" in row, "total" in row}) > 1:
            say(f"lateness.rows[{i}]", "is a group without being one")
    for i, row in enumerate(lateness.get("links", {"rows": []})["rows"]):
        where = f"lateness.links.rows[{i}]"
        if len(row["values"]) != lateness["columns"]["count"]:
            say(f"{where}.values", "has not one entry for each column")
        if all(value is None for value in row["values"]):
            say(f"{where}.values", "says nothing")
        if (row["total"] is None) != (row["kind"] == "gauge"):
            say(f"{where}.total", "is of what adds up, and of nothing else")


def check(document):
    """What is wrong with it: sentences."""
    problems = SCHEMAS.problems(document, "report.v3")[:50]
    if problems:
        return problems

    def say(where, what):
        problems.append(f"{where}: {what}")

    texts_and_times(document, say)
    columns(document, say)
    rows_of_lateness(document["lateness"], say)
    if document["diagnosis"] is not None and len(document["verdict"]["cards"]) != len(document["diagnosis"]["findings"]):
        say("verdict.cards", "not one for each finding")
    if len(document.get("comparison", {"rows": []})["rows"]) > COMPARED_ROWS:
        say("comparison.rows", f"more than {COMPARED_ROWS}")
    references(document, say)
    return problems[:50]


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
