#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Warns of files and folders that have grown beyond what reads well. Never fails: review decides."""
import collections
import re

import source_tree

TALK_AT = {".cc": 500, ".c": 500, ".h": 300, ".py": 300}
FUNCTION_LINES = 60
FOLDER_FILES = 40


def long_functions(text):
    """Lines of each function that starts in column 0 or inside a class and ends with a brace at the same indent."""
    start, indent, name = None, None, None
    for number, line in enumerate(text.splitlines()):
        opening = re.match(r"^( {0,4})(?!namespace|class|struct|enum|union|extern|\})[\w:~<].*?([\w~]+)\(.*\{$", line)
        if start is None and opening and not re.match(r"\s*(if|for|while|switch|else|do)\b", line):
            start, indent, name = number, opening.group(1), opening.group(2)
        elif start is not None and line.startswith(indent + "}"):
            if number - start > FUNCTION_LINES:
                yield name, number - start
            start = None


def main():
    folders = collections.Counter()
    for path in source_tree.tracked():
        limit = TALK_AT.get(path.suffix)
        if limit is None or path.parts[0] == "third_party":
            continue
        folders[path.parent] += 1
        text = source_tree.read(path)
        lines = text.count("\n")
        if lines > limit:
            print(f"warn  {path}: {lines} lines; talk about it at {limit}")
        if path.suffix in (".cc", ".h"):
            for name, length in long_functions(text):
                print(f"warn  {path}: {name} has {length} lines; talk about it at {FUNCTION_LINES}")
    for folder, count in folders.items():
        if count > FOLDER_FILES:
            print(f"warn  {folder}: {count} files; make rooms")


main()
