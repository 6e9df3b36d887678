#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tracked text files name no machine, no package mirror and no workplace; each begins with its licence."""
import re

import source_tree

# Split so that this file does not hold the words itself.
WORDS = [r"/wo" r"rk/", r"/ho" r"me/\w", r"/tmp/da" r"ta", r"\biss" r"ues? #\d", r"\b(?:this|earlier|previous|next|helper) sess" r"ion\b", r"\bsub-?ag" r"ent", r"\bart" r"ifactory\b",
         r"\bpypi\.(?!org)\w", r"\bnex" r"us\.", r"\bmir" r"ror\.\w+\.\w+/", r"\b10\.\d+\.\d+\.\d+\b", r"(?-i:\bTO" r"DO\b)(?!\()",
         r"(?-i:\bFIX" r"ME\b)", r"\bchat" r"gpt\b", r"\bcl" r"aude\b"]
PATTERN = re.compile("|".join(WORDS), re.IGNORECASE)
LICENSED = {".h", ".cc", ".c", ".def", ".py", ".cmake", ".ts", ".sh", ".map"}
BINARY = {".gz", ".xz", ".zst", ".db", ".lks", ".bin"}


def main():
    problems, files = [], source_tree.tracked()
    for path in files:
        if path.suffix in BINARY or path.parts[0] == "third_party" or "corpus" in path.parts:
            continue
        text = source_tree.read(path)
        if "\0" in text:
            continue
        for found in PATTERN.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            problems.append(f"{path} line {line}: {found.group(0)!r} does not belong in the tree")
        script = text.startswith("#!")
        if (path.suffix in LICENSED or script or path.name == "CMakeLists.txt") and "SPDX-License-Identifier" not in text[:300]:
            problems.append(f"{path}: no SPDX line at its top")
    source_tree.finish(problems, f"{len(files)} files are clean")


main()
