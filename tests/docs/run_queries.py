#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ```sql blocks of README.md and docs/*.md on a database made from the recording of eight ranks; those of docs/fleet.md are for a store,
of which tests/fleet asks them.

Usage: run_queries.py SOURCE_TREE BUILD_TREE SCRATCH. A query fails the test when SQLite refuses it or it has no row.
"""
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

source, build, scratch = (pathlib.Path(argument) for argument in sys.argv[1:4])
work = scratch / "queries"
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
database = work / "trace.db"
subprocess.run([build / "bin/lockstep", "trace", "-m", "deep", "-o", database, source / "tools/replay", "--host",
                build / "bin/lockstep-nccl-host", source / "examples/recordings/train2h"], check=True)

connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
failures = queries = 0
for page in [source / "README.md", *sorted((source / "docs").rglob("*.md"))]:
    if page.name == "fleet.md":
        continue
    for query in re.findall(r"^```sql\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        queries += 1
        try:
            rows = connection.execute(query).fetchall()
            problem = "" if rows else "no rows"
        except sqlite3.Error as error:
            problem = str(error)
        if problem:
            failures += 1
            print(f"{page.relative_to(source)}: {problem}\n{query}")
print(f"{queries} queries, {failures} failed")
sys.exit(1 if failures or not queries else 0)
