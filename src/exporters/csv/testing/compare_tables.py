#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_tables.py CSV_FOLDER JSON_FOLDER|TRACE.DB: exits with 1 unless both hold the same tables, cell by cell.

Of a trace.db its views, and its marks; losses of the merge are its own.
"""
import csv
import json
import pathlib
import re
import sqlite3
import sys

FORMULA = "=+-@\t\r"
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
QUERIES = {view: f"SELECT * FROM {view}" for view in ("processes", "comms", "ops", "kernels", "ranges", "losses")}
QUERIES["losses"] += " WHERE stage != 'merge'"
QUERIES["marks"] = """SELECT m.id, m.process, p.rank, t.tid, s.text AS name, m.value, m.is_step, m.time_ns FROM mark m
    JOIN process p ON p.id = m.process JOIN string s ON s.id = m.name LEFT JOIN thread t ON t.id = m.thread ORDER BY m.id"""


def cell(value):
    if value is None: return ""
    if not isinstance(value, str): return str(value)
    value = CONTROLS.sub("?", value)
    return "'" + value if value[:1] and value[0] in FORMULA else value


def tables_of(path):
    """{table: [{column: value}]}"""
    if path.is_dir():
        return {file.stem: [json.loads(line) for line in open(file, encoding="utf-8", newline="\n")] for file in path.iterdir()}
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    return {name: [dict(row) for row in database.execute(query)] for name, query in QUERIES.items()}


csv.field_size_limit(1 << 24)
folder = pathlib.Path(sys.argv[1])
others = tables_of(pathlib.Path(sys.argv[2]))
missing = {path.stem for path in folder.iterdir()} ^ set(others)
assert missing <= {"columns"}, missing
for name, said in others.items():
    assert (folder / f"{name}.csv").read_bytes().endswith(b"\r\n"), name
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file, strict=True)
    assert len(rows) == len(said), (name, len(rows), len(said))
    for row, values in zip(rows, said):
        assert head == list(values), (name, head, list(values))
        assert row == [cell(value) for value in values.values()], (name, row, values)
print(", ".join(f"{name}: {len(said)}" for name, said in sorted(others.items())))
