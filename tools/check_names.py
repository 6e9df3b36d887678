#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Identifiers and file names hold no private word that the field has another word for. Names of TEST()s are sentences."""
import re

import source_tree

# Part of a name, and what to write for it; docs/glossary.md has the words that readers meet.
PLAIN = {
    "testimony": "evidence source", "testimonies": "evidence sources", "convict": "promote", "acquit": "dismiss",
    "company": "peers", "seat": "member, position", "seats": "members, positions", "carry": "carried", "leg": "segment",
    "legs": "segments", "settle": "finish, resolve", "settler": "what it does", "scene": "state, context", "draft": "builder",
    "rhythm": "cadence", "taker": "sampler", "told": "reported", "untold": "unreported", "tell": "report", "tells": "has, reports",
    "said": "stated", "unsaid": "omitted", "say": "print, warn",
}
CODE = {".h", ".cc", ".c", ".def", ".inc"}
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', re.DOTALL | re.MULTILINE)
TEST = re.compile(r"\b(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\([^)]*\)")
# A line buffer's rest is the carry.
ALLOWED = {"src/base/lines/line_splitter.h": {"carry"}, "src/base/lines/line_splitter.cc": {"carry"}}


def parts(name):
    """ "KeepsSeats_of" -> keeps, seats, of"""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def main():
    problems, names = [], set()
    for path in source_tree.tracked("src", "include", "sim", "fuzz", "bench", "tests", "examples"):
        if path.suffix not in CODE:
            continue
        text = TEST.sub("", NOT_CODE.sub(" ", source_tree.read(path)))
        found = {}
        text = re.sub(r"\w*(CannotTell|cannot_tell|CANNOT_TELL)\w*", "", text)  # the verdict's name: CANNOT TELL
        for name in [path.stem, *re.findall(r"[A-Za-z_]\w*", text)]:
            names.add(name)
            for part in parts(name):
                if part in PLAIN and part not in ALLOWED.get(str(path), ()):
                    found[name] = PLAIN[part]
        problems += [f"{path}: '{name}'; plain: {plain}" for name, plain in sorted(found.items())]
    source_tree.finish(problems, f"{len(names)} names")


main()
