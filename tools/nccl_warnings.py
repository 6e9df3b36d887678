#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every text that NCCL or RCCL can print as a warning, one a line, with values for what it fills in.

Usage: tools/nccl_warnings.py CHECKOUT [REVISION...]
  CHECKOUT   a git repository of NCCL or RCCL, with or without a work tree
  REVISION   releases to look through (HEAD); a text of several is printed once
What comes out is NCCL's own text: it serves to look at, and is not kept here. docs/adding.md says what for.
"""
import re
import subprocess
import sys

SOURCES = ("*.cc", "*.h", "*.cpp", "*.cu", "*.hpp")
CALL = re.compile(r"\b(?:WARN|ERROR|NCCL_OFI_WARN|CUDACHECK_WARN)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
SPEC = re.compile(r"%(?:[-+ #0]*)(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|t|j)?([diouxXpsfFgGeEcu%])")
SAMPLES = {"d": "7", "i": "7", "u": "7", "o": "7", "x": "1f", "X": "1F", "p": "0x7f00c0de", "s": "sample", "f": "1.5", "F": "1.5", "g": "1.5",
           "G": "1.5", "e": "1.5", "E": "1.5", "c": "c", "%": "%"}


def git(checkout, *words):
    return subprocess.run(["git", "-C", checkout, *words], capture_output=True, check=True).stdout.decode("utf-8", "replace")


def arguments_of(text, begin):
    """What stands between the bracket before `begin` and the one that closes it."""
    depth, at, quoted = 1, begin, False
    while at < len(text) and depth:
        c = text[at]
        if quoted:
            at += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        else:
            depth += (c == "(") - (c == ")")
        at += 1
    return text[begin:at - 1]


def format_of(arguments):
    """The literals that the first argument is made of; macros between them stand for a number."""
    parts, at = [], 0
    while True:
        match = LITERAL.search(arguments, at)
        between = arguments[at:match.start()] if match else arguments[at:]
        if parts and not re.fullmatch(r"[\s\\]*(?:PRI\w+|[A-Z_0-9]+)?[\s\\]*", between):
            break
        if match is None:
            break
        if not parts and between.strip(" \t\n\\"):
            return None
        if parts and between.strip(" \t\n\\"):
            parts[-1] = re.sub(r"%[-+ #0]*\d*$", "", parts[-1]) + "7"
        parts.append(match.group(1))
        at = match.end()
    return "".join(parts) if parts else None


def texts_of(checkout, revision):
    found = git(checkout, "grep", "-lE", r"\b(WARN|ERROR) *\(", revision, "--", *SOURCES)
    for name in found.split():
        text = git(checkout, "show", name)
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
        for call in CALL.finditer(text):
            line = text[text.rfind("\n", 0, call.start()) + 1:call.start()]
            if line.lstrip().startswith("#define"):
                continue
            made = format_of(arguments_of(text, call.end()))
            if made:
                made = made.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"').replace("\\\\", "\\")
                yield SPEC.sub(lambda spec: SAMPLES[spec.group(1)], made.strip().split("\n")[0])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seen = set()
    for revision in sys.argv[2:] or ["HEAD"]:
        seen.update(texts_of(sys.argv[1], revision))
    print("\n".join(sorted(text for text in seen if text)))


main()
