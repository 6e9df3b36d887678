#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/demo and holds what it prints: short parts, ending with a hang, a straggler and their reports, and a text that fits the tables above it.

Usage: check_demo.py SOURCE_TREE BUILD_TREE SCRATCH.
"""
import json
import pathlib
import re
import subprocess
import sys

source, build, scratch = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
out = scratch / "demo"
MOST_LINES = 15
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def blamed(run):
    """The rank that the simulated job made stuck or slow."""
    return json.loads((out / run / "truth.json").read_text())["fault"]["ranks"][0]


def time(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def check_recorded(text):
    commands = re.split(r"^\$ .*\n", text, flags=re.MULTILINE)[1:]
    expect(len(commands) == 2, f"a trace and a summary of it, not {len(commands)} commands")
    for said in commands:
        expect(len(said.splitlines()) <= MOST_LINES + 3, f"more than {MOST_LINES} lines:\n{said}")
    expect(re.search(rf"next: lockstep diagnose {re.escape(str(out / 'trace.db'))}; lockstep report ", text), "trace does not say that `diagnose` and `report` come next")
    row = re.search(r"^  AllReduce +ncclFloat32 +\S+ +8 +4 B\+ .*", text, re.MULTILINE)
    sentence = re.search(r"half of them take\s+less than (\d+ \w+) on the GPU, the longest (\d+ \w+)", text)
    expect(row and sentence, "the demo's sentence or the row that it is about is not shown")
    if row and sentence:
        times = re.findall(r"[\d.]+ (?:ns|us|ms|s)\b", row.group())
        median, longest = times[-3], times[-1]  # before the 99th percentile
        expect(time(median) < time(sentence.group(1)), f"half take {median}, the text says less than {sentence.group(1)}")
        expect(abs(time(longest) - time(sentence.group(2))) < 0.5e6, f"the longest takes {longest}, the text says {sentence.group(2)}")


def check_diagnosed(text, run, sentence):
    expect(len(text.strip().splitlines()) <= MOST_LINES, f"{run}: more than {MOST_LINES} lines")
    expect(f"rank {blamed(run)} " in text and sentence in text, f"{run}: does not say that rank {blamed(run)} {sentence}:\n{text}")


def main():
    done = subprocess.run([source / "tools/demo", build, out], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    expect("\x1b" not in done.stdout, "codes of a terminal, where none is")
    parts = re.split(r"^== (.*)\n", done.stdout, flags=re.MULTILINE)[1:]
    titles, texts = parts[::2], parts[1::2]
    expect([title[:2] for title in titles] == ["1.", "2.", "3.", "4.", "Ne"], f"parts: {titles}")
    if not problems:
        check_recorded(texts[0])
        check_diagnosed(texts[1], "hang", "never called operation")
        check_diagnosed(texts[2], "straggler", "slow to launch")
        # Without npm a build has no page, and says so.
        page = (build / "src/report/page/index.html").stat().st_size > 0 if (build / "src/report/page/index.html").exists() else None
        for run in ("hang", "straggler"):
            expect(f"file://{out / run}.html" in texts[3] and (out / f"{run}.html").exists() or not page, f"{run}: no report:\n{texts[3]}")
    for problem in problems:
        print(problem)
    print(f"{len(titles)} parts, {len(problems)} failed")
    return 1 if problems else 0


sys.exit(main())
