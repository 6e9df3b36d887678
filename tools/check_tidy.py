#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (.clang-tidy) over the sources, tests left out, with the commands of the preset that compiles each by itself. Usage: check_tidy.py

Sources of one folder are looked at together: reading the standard library's headers takes most of the time. What fails
together is looked at in halves. A source that passed is not looked at again until it, a header of ours that it includes, or
.clang-tidy changes: stamps are in build/tidy/.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

import source_tree

# What GCC knows and clang 14 does not, its precompiled header too; none of it changes what clang-tidy sees.
GCC_FLAGS = re.compile(r" (-mtls-dialect=\w+|-f(no-)?fat-lto-objects|-flto(=\w+)?|-Wno-(restrict|format-truncation)|-Winvalid-pch|-include \S+/cmake_pch\.hxx)(?= )")
LOOKED_AT = ("src", "sim", "examples", "include")
TOGETHER = 16


@functools.cache
def included(path, folders):
    """The headers that a file includes by name in quotes, as far as they lie in these folders or beside it."""
    names = re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(encoding="utf-8", errors="replace"), re.M)
    found = (next((folder / name for folder in (path.parent, *folders) if (folder / name).is_file()), None) for name in names)
    return [pathlib.Path(os.path.normpath(header)) for header in found if header]


def reached(path, folders):
    """A source and all that it includes, in an order that does not change."""
    seen, todo = {path}, [path]
    while todo:
        new = [header for header in included(todo.pop(), folders) if header not in seen]
        seen.update(new)
        todo += new
    return sorted(seen)


def commands():
    """The database of the preset `separate`, which is configured and not built."""
    subprocess.run(["cmake", "--preset", "separate"], cwd=source_tree.ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads(GCC_FLAGS.sub("", (source_tree.ROOT / "build/separate/compile_commands.json").read_text()))


def tidy(folder, batch):
    """clang-tidy of one source, or of one that includes a batch. Its own database: of the whole one it would run every target's command."""
    stamp, entry = batch[0]
    own = folder / "of" / stamp.name
    own.mkdir(parents=True, exist_ok=True)
    if len(batch) > 1:
        joined = own / "joined.cc"
        joined.write_text("".join(f'#include "{other["file"]}"  // NOLINT\n' for _, other in batch))
        entry = {**entry, "file": str(joined), "command": entry["command"].replace(entry["file"], str(joined))}
    (own / "compile_commands.json").write_text(json.dumps([entry]))
    return subprocess.run(["clang-tidy", "--quiet", "-p", str(own), entry["file"]], capture_output=True, text=True)


def look_at(folder, batch):
    """What clang-tidy says of a batch. Names of two sources can meet in one unit: what fails together is looked at in halves."""
    done = tidy(folder, batch)
    if done.returncode == 0:
        for stamp, _ in batch:
            stamp.touch()
        return []
    if len(batch) == 1:
        return [done.stdout]
    half = len(batch) // 2
    return look_at(folder, batch[:half]) + look_at(folder, batch[half:])


def main():
    folder = source_tree.ROOT / "build/tidy"
    folder.mkdir(parents=True, exist_ok=True)
    rules, todo = (source_tree.ROOT / ".clang-tidy").read_bytes(), {}
    for entry in commands():
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(source_tree.ROOT) or path.stem.endswith("_test"):
            continue
        inside = path.relative_to(source_tree.ROOT).parts
        if inside[0] not in LOOKED_AT or "tests" in inside:
            continue
        flags = re.sub(r" -o \S+ -c \S+$| -D\w+_EXPORTS\b", "", entry["command"])
        state = hashlib.sha256(rules + flags.encode())
        for part in reached(path, tuple(map(pathlib.Path, re.findall(r" -(?:I|isystem) ?(\S+)", flags)))):
            state.update(part.read_bytes())
        stamp = folder / state.hexdigest()
        if not stamp.exists():
            todo.setdefault((path.parent, flags), {})[stamp] = entry
    batches = [list(alike.items())[at:at + TOGETHER] for alike in todo.values() for at in range(0, len(alike), TOGETHER)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda batch: look_at(folder, batch), batches))
    source_tree.finish(sum(said, []), f"{sum(map(len, batches))} files looked at, all pass")


main()
