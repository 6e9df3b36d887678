#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (.clang-tidy) over the sources of a build, tests left out. Usage: check_tidy.py [BUILD_FOLDER]

A source that passed is not looked at again until it, a header of ours that it includes, or .clang-tidy changes:
stamps are in build/tidy/. What it includes is known from ninja's record of the build.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import source_tree

# What GCC knows and clang 14 does not, its precompiled header too; none of it changes what clang-tidy sees.
GCC_FLAGS = re.compile(r" (-mtls-dialect=\w+|-f(no-)?fat-lto-objects|-flto(=\w+)?|-Wno-(restrict|format-truncation)|-Winvalid-pch|-include \S+/cmake_pch\.hxx)(?= )")
LOOKED_AT = ("src", "sim", "examples", "include")


def dependencies(build):
    """Object file -> the headers of ours that it was compiled from."""
    listing = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True, capture_output=True, text=True).stdout
    found = {}
    for block in listing.split("\n\n"):
        name, *lines = block.splitlines() or [""]
        paths = [pathlib.Path(os.path.normpath(build / line.strip())) for line in lines]
        found[name.split(":")[0]] = [path for path in paths if path.is_relative_to(source_tree.ROOT)]
    return found


def look_at(entry, stamp, folder):
    done = subprocess.run(["clang-tidy", "--quiet", "-p", str(folder), entry["file"]], capture_output=True, text=True)
    if done.returncode == 0:
        stamp.touch()
    return done.returncode, done.stdout


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else source_tree.ROOT / "build/release").resolve()
    database = build / "compile_commands.json"
    if not database.exists():
        source_tree.finish([f"no {database}; run make build first"], "")
    folder = source_tree.ROOT / "build/tidy"
    folder.mkdir(parents=True, exist_ok=True)
    entries = json.loads(GCC_FLAGS.sub("", database.read_text()))
    (folder / "compile_commands.json").write_text(json.dumps(entries))

    rules, headers = (source_tree.ROOT / ".clang-tidy").read_bytes(), dependencies(build)
    todo = []
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(source_tree.ROOT) or path.stem.endswith("_test"):
            continue
        inside = path.relative_to(source_tree.ROOT).parts
        if inside[0] not in LOOKED_AT or "tests" in inside:
            continue
        state = hashlib.sha256(rules)
        output = re.search(r" -o (\S+)", entry["command"])
        for part in [path, *headers.get(output.group(1) if output else "", [])]:
            state.update(part.read_bytes() if part.exists() else b"")
        stamp = folder / state.hexdigest()
        if not stamp.exists():
            todo.append((entry, stamp, folder))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: look_at(*job), todo))
    source_tree.finish([text for status, text in results if status != 0], f"{len(todo)} files looked at, all pass")


main()
