#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on production functions of more than 80 lines, production files of more than 500 and folders of more than 20 sources;
warns of what has grown beyond what reads well.

A function is measured from the first line of its signature to its closing brace. Tables of data (most lines end with a comma) may be long.
A source and its header count once in a folder, its tests not at all.
"""
import collections
import re

import source_tree

TALK_AT = {".cc": 500, ".c": 500, ".h": 300, ".py": 300}
FILE_MOST = 500  # of production sources
FUNCTION_TALK_AT, FUNCTION_MOST = 60, 80
FOLDER_MOST = 20
# What was larger when the limits came. It may shrink, and so may these numbers.
LARGER = {
    "src/analysis/hang": 22,
    "src/capture/cuda/sharing.cc": 675,
    "src/capture/nccl/events.cc": 656,
    "src/readers/native/tail/live_tail.cc": 647,
    "src/verdict/join/join.cc": 640,
    "sim/hsa/fake_hsa.cc": 580,
}

NO_FUNCTION = re.compile(r"\s*((namespace|class|struct|enum|union|extern|using|template|return|if|for|while|switch|else|do|case)\b|#|//|\})")
TEST = re.compile(r"\s*\w*TEST\w*\((\w+), *(\w+)\)")


def is_table(lines):
    return sum(line.rstrip().endswith((",", "\"")) for line in lines) > len(lines) / 2


def functions(lines):
    """Name and lines of each function that begins in column 0 or inside a class and ends with a brace at the same indent."""
    at = 0
    while at < len(lines):
        line = lines[at]
        indent = re.match(r" {0,4}(?! )", line)
        if indent is None or not line.strip() or "(" not in line or NO_FUNCTION.match(line):
            at += 1
            continue
        head = at  # the signature, with the initialisers of a constructor, goes on to the first line that ends with { or ;
        while head < len(lines) and not lines[head].rstrip().endswith(("{", ";", "}")):
            head += 1
        if head == len(lines) or not lines[head].rstrip().endswith("{"):
            at = head + 1
            continue
        end = next((i for i in range(head + 1, len(lines)) if lines[i].startswith(indent.group() + "}")), head)
        test = TEST.match(line)
        called = re.search(r"([\w~:]+|operator.*?) *\(", line)
        name = ".".join(test.groups()) if test else called.group(1) if called else line.strip()
        yield name, lines[at:end + 1]
        at = end + 1


def main():
    folders, failures = collections.defaultdict(set), []
    for path in source_tree.tracked():
        limit = TALK_AT.get(path.suffix)
        if limit is None:
            continue
        lines = source_tree.read(path).splitlines()
        is_production = not path.stem.endswith("_test") and path.parts[0] in ("src", "sim", "include")
        most = LARGER.get(str(path), FILE_MOST)
        if is_production and len(lines) > most and not is_table(lines):
            failures.append(f"{path}: {len(lines)} lines; at most {most}")
        elif len(lines) > limit and str(path) not in LARGER:
            print(f"warn  {path}: {len(lines)} lines; talk about it at {limit}")
        if path.suffix not in (".cc", ".h"):
            continue
        if not path.stem.endswith("_test"):
            folders[str(path.parent)].add(path.stem)
        for name, body in functions(lines):
            if is_table(body):
                continue
            if len(body) > FUNCTION_MOST and is_production:
                failures.append(f"{path}: {name} has {len(body)} lines; at most {FUNCTION_MOST}")
            elif len(body) > FUNCTION_TALK_AT:
                print(f"warn  {path}: {name} has {len(body)} lines; talk about it at {FUNCTION_TALK_AT}")
    for folder, stems in sorted(folders.items()):
        most = LARGER.get(folder, FOLDER_MOST)
        if len(stems) > most:
            failures.append(f"{folder}: {len(stems)} sources; at most {most}: make rooms")
    source_tree.finish(failures, f"no production function of more than {FUNCTION_MOST} lines, file of {FILE_MOST} or folder of {FOLDER_MOST}")


main()
