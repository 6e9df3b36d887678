#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: every `#include "..."` under src/ against the table in src/README.md.

A rule belongs to the longest matching room. `X` in a room's name stands for one folder; `X` in what it may include
stands for the same folder. A room may always include itself. Tests keep to their room's rule and what its row in the
second column of "Tests also" adds; a header that includes gtest is a test, too. A permission that nobody uses fails, too.
"""
import re

import source_tree

TABLE = "src/README.md"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def rules():
    """[(room pattern, allowed prefixes, also allowed in tests)] from the table between the `layers` markers."""
    text = source_tree.read(TABLE)
    body = re.search(r"<!-- layers -->(.*?)<!-- /layers -->", text, re.DOTALL).group(1)
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in body.splitlines() if "|" in line]
    names = lambda cell: re.findall(r"`([^`]+)`", cell)
    return [(names(row[0])[0], names(row[1]), names(row[2])) for row in rows[2:]]


def match(table, folder):
    """The rule for a folder (relative to src/), with X filled in."""
    best = None
    for room, allowed, tests in table:
        pattern = re.escape(room).replace("/X", "/(?P<x>[^/]+)")
        found = re.fullmatch(pattern + r"(/.*)?", folder)
        if found and (best is None or len(room) > len(best[0])):
            x = found.groupdict().get("x", "")
            fill = lambda names: [name.replace("/X", "/" + x) for name in names]
            best = (room, found.group(0)[: len(found.group(0)) - len(found.groups()[-1] or "")], fill(allowed), fill(tests), x)
    return best


def allowed_by(prefixes, include):
    """The prefix that allows an include, or None: a file (`readers/reader.h`), or a folder and all below (`base`)."""
    return next((prefix for prefix in prefixes if include == prefix or include.startswith(prefix + "/")), None)


def main():
    table = rules()
    problems, checked = [], 0
    unused = {(room, column, name) for room, *columns in table for column in (0, 1) for name in columns[column]}
    for path in source_tree.tracked("src/*.h", "src/*.cc", "src/*.c", "src/*.inc", "src/*.def"):
        inside = path.relative_to("src")
        rule = match(table, str(inside.parent))
        if rule is None:
            problems.append(f"{path}: its folder has no row in {TABLE}")
            continue
        row, room, allowed, tests, x = rule
        text = source_tree.read(path)
        is_test = inside.stem.endswith("_test") or "#include <gtest/gtest.h>" in text
        for include in INCLUDE.findall(text):
            checked += 1
            places = ("src/" + include, "src/" + include + ".in", "include/" + include, include, include + ".in")
            if not any((source_tree.ROOT / place).exists() for place in places):
                problems.append(f'{path}: "{include}" is not a path from src/')
                continue
            if allowed_by([room], include):
                continue
            columns = [allowed_by(allowed, include), allowed_by(tests, include) if is_test else None]
            if columns == [None, None]:
                problems.append(f'{path}: {room} may not include "{include}"')
            column = 0 if columns[0] else 1
            if columns[column]:
                unused -= {(row, column, columns[column]), (row, column, re.sub("/" + (x or "$^") + r"\b", "/X", columns[column], count=1))}
    problems += [f"{TABLE}: {room} includes nothing of `{name}`{' in tests' if column else ''}" for room, column, name in sorted(unused)]
    source_tree.finish(problems, f"{checked} includes keep to the table")


main()
