#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every `lockstep ...` line of README.md and docs/*.md in a folder with a simulated run.

Usage: check_commands.py SOURCE_TREE BUILD_TREE SCRATCH. A line fails when the program refuses its words (a command, option or value
that it does not know, too few or too many operands). If all files that it names are there, it must also answer: exit code 0, 1 or 3.
Launchers and programs of the user are stand-ins that do nothing. Of a line with "..." or a shell variable only the command is looked at. What stands in a sentence may lack its operands.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

PATIENCE_S = 60
GOES_ON = ("counters", "--watch", "--serve", "exporter", "top")  # end by Ctrl-C: two seconds of them will do
STAND_INS = ("torchrun", "mpirun", "srun", "python", "python3", "COMMAND", "./train", "train")
REFUSED = re.compile(r"see lockstep \w+ --help|unknown command|unknown format|no finding is called")
INCOMPLETE = re.compile(r"is missing;|takes .* not 0;|needs a value \(")
NAMES = {"ID": "never-joined", "FORMAT": "csv"}  # placeholders that stand for a word of a list
ANSWERS = (0, 1, 3)

source, build, scratch = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
work = scratch / "commands"


def prepare():
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    for name in STAND_INS:
        path = work / name if name.startswith("./") else work / "bin" / name
        path.write_text("#!/bin/sh\nexit 0\n")
        path.chmod(0o755)
    simulate = [build / "bin/lockstep-sim-job", "--ranks", "4", "--steps", "20", "--mode", "deep", "--marks", "-o"]
    for run in ("RUN", "good", "new", "A", "B"):
        subprocess.run([*simulate, work / run], check=True, stdout=subprocess.DEVNULL)
    for database in ("trace.db", "good.db", "new.db"):
        subprocess.run([build / "bin/lockstep", "merge", "-o", work / database, work / "RUN"], check=True, capture_output=True)


def lines(text):
    """(command line, whether it stands in a sentence): from blocks without a language, and from code spans."""
    for block in re.findall(r"^```(?:sh|bash)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"[;|]|&&|\bdo\b", re.sub(r"(^|\s)#\s.*", "", line)):
                if found := re.match(r"\s*(?:\w+=\S+ +)*(?:mpirun .*?|srun .*?)?lockstep ([a-z].*)", part):
                    yield found.group(1), False
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for span in re.findall(r"`([^`]+)`", prose):
        span = re.sub(r"\s+", " ", span)
        if found := re.fullmatch(r"(?:[\w.]+ +\| +)?lockstep ([a-z][^|;]*)", span):
            yield found.group(1), True


def problem_of(line, in_sentence):
    """What is wrong with a line, or nothing."""
    try:
        words = [re.sub(r"^\d?>.*", "", word) for word in shlex.split(line)]
    except ValueError as error:
        return str(error)
    words = [NAMES.get(word, word) for word in words if word not in ("", "&")]
    if any(mark in line for mark in ("...", "…", "$", "<")):
        words = [words[0], "--help"]
    elif ">" in words[-2:-1]:
        words = words[:-2]
    environment = {"PATH": f"{work}/bin:/usr/bin:/bin", "HOME": str(work), "TMPDIR": str(work), "TERM": "dumb"}
    goes_on = any(word.split("=")[0] in GOES_ON for word in words) and "--once" not in words
    try:
        done = subprocess.run([build / "bin/lockstep", *words], cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=2 if goes_on else PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "" if goes_on else f"no answer in {PATIENCE_S} s"
    if REFUSED.search(done.stderr) and not (in_sentence and INCOMPLETE.search(done.stderr)):
        return done.stderr.strip().splitlines()[-1]
    named = [word for word in words[1:] if word in ("RUN", "good", "new", "A", "B", "trace.db", "good.db", "new.db")]
    operands = [word for word in words[1:] if not word.startswith("-")]
    complete = named and all(word in named for word in operands) and words[0] not in ("trace", "control")
    if complete and not goes_on and done.returncode not in ANSWERS and not done.stderr.count("exists"):
        return f"exit {done.returncode}: {done.stderr.strip()[-200:]}"
    return ""


def main():
    prepare()
    seen, failed = set(), 0
    for page in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        if page.name in ("cli.md", "writing.md"):
            continue
        for line, in_sentence in lines(page.read_text()):
            if line in seen:
                continue
            seen.add(line)
            if problem := problem_of(line, in_sentence):
                failed += 1
                print(f"{page.relative_to(source)}: lockstep {line}\n    {problem}")
    print(f"{len(seen)} command lines, {failed} failed")
    sys.exit(failed > 0 or not seen)


main()
