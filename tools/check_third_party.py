#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""THIRD-PARTY.md names every package that CMake looks for and every npm package that the page of reports carries."""
import json
import re

import source_tree

OWN = {"lockstep"}


def main():
    page = source_tree.read("THIRD-PARTY.md")
    named = {word.lower() for word in re.findall(r"[\w+-]+", page)}
    problems, seen = [], set()
    for path in source_tree.tracked():
        if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
            continue
        text = re.sub(r"#.*", "", source_tree.read(path))
        for name in re.findall(r"find_package\((\S+?)[\s)]", text) + re.findall(r"find_library\(\w+ (?:NAMES )?(\S+?)[\s)]", text):
            seen.add(name)
            if name not in OWN and name.lower() not in named:
                problems.append(f"{path}: {name} is not in THIRD-PARTY.md")
    lock = json.loads(source_tree.read("report-ui/package-lock.json"))
    for place, package in lock["packages"].items():
        name = place.removeprefix("node_modules/")
        if not place or package.get("dev"):
            continue
        seen.add(name)
        row = re.search(rf"^\| {re.escape(name)} \|.*$", page, re.MULTILINE)
        if row is None:
            problems.append(f"report-ui/package-lock.json: {name} is not in THIRD-PARTY.md")
        elif package.get("license") not in row.group(0):
            problems.append(f"THIRD-PARTY.md: {name} is under {package.get('license')}")
    source_tree.finish(problems, f"{len(seen)} packages are listed")


main()
