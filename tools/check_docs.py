#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Markdown files cite exists, and the headers that comments of the sources name.

Links to files; `paths/in/backticks` that begin with a folder of the tree; `functions()` and `Name::member` in
backticks, somewhere in the sources; `make TARGET`; `lockstep COMMAND` and its long options, in the command line's own
texts. Line numbers are never cited. A comment names a header as includes do, or from the root of the tree.
"""
import re

import source_tree

SOURCES = ("src", "include", "sim", "python", "examples", "bench", "fuzz", "cmake", "tests", "tools")


def code_of(text):
    """Text of code spans and code blocks, each with whether it is a block."""
    for block in re.findall(r"^```(?!mermaid)[a-z]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield block, True
    for span in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        yield span, False


def missing_path(name):
    if any(mark in name for mark in "<>*{}%$…") or name.endswith("/X") or name.startswith("build/") or name.startswith("demo-out/"):
        return False
    top = name.split("/")[0]
    if not (source_tree.ROOT / top).is_dir():
        # Rooms are also named from src/, as includes name them.
        if not (source_tree.ROOT / "src" / top).is_dir():
            return False
        return not (source_tree.ROOT / "src" / name.rstrip("/")).exists()
    return not (source_tree.ROOT / name.rstrip("/")).exists() and not (source_tree.ROOT / "src" / name.rstrip("/")).exists()


def commands():
    """Names of the commands, and all text of the command line's sources (for options)."""
    listed = source_tree.ROOT / "src/cli/commands.def"
    text = listed.read_text() if listed.exists() else ""
    names = set(re.findall(r"^COMMAND\((\w+)", text, re.MULTILINE)) | {"help"}
    cli = "\n".join(source_tree.read(path) for path in source_tree.tracked("src/cli"))
    return names, cli


def check(path, text, sources, command_names, cli_text, targets):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if not re.match(r"[a-z]+:", link) and not (source_tree.ROOT / path.parent / link).exists():
            yield f"{path}: link to {link}, which does not exist"
    if found := re.search(r"\b[\w/]+\.(?:cc|h|py|def|md):\d+", text):
        yield f"{path}: cites a line number: {found.group(0)}"
    for code, is_block in code_of(text):
        if not is_block:
            if re.fullmatch(r"[\w.<>*{},+-]+(/[\w.<>*{},+-]*)+", code) and missing_path(code):
                yield f"{path}: no such path: {code}"
            for name in re.findall(r"\b([a-z]\w+)\(\)", code) + re.findall(r"::([a-zA-Z]\w+)", code):
                if not re.search(rf"\b{name}\b", sources):
                    yield f"{path}: no such name in the sources: {name}"
        for target in re.findall(r"(?:^|\s)make ([a-z]+)\b", code):
            if target not in targets:
                yield f"{path}: make has no target {target}"
        for line in re.findall(r"(?:^|[\s/])lockstep ((?:[a-z]+)\b[^\n|#]*)", code):
            command, _, rest = line.partition(" ")
            if command_names == {"help"}:
                continue
            if command not in command_names:
                yield f"{path}: lockstep has no command {command}"
            for option in re.findall(r"(?<=\s)--([a-z][a-z-]+)", " " + rest.split(" torchrun")[0].split(" python")[0]):
                if option not in cli_text:
                    yield f"{path}: lockstep {command} has no option --{option}"


def check_format_page():
    """docs/format.md names every kind, loss, definition and field that the headers of src/format/ declare."""
    page = source_tree.read("docs/format.md")
    names = re.findall(r"^(?:RECORD|LOSS)\(\d+, (\w+)", source_tree.read("src/format/record_kinds.def") +
                       source_tree.read("src/format/losses.def"), re.MULTILINE)
    for header in ("file_layout", "records", "definitions"):
        text = re.sub(r"//[^\n]*", "", source_tree.read(f"src/format/{header}.h"))
        for body in re.findall(r"^struct \w+ \{(.*?)^\};", text, re.DOTALL | re.MULTILINE):
            for fields in re.findall(r"(?:alignas\(\d+\) )?[\w ]+? (\w+(?:\[\w+\])?(?:, \w+)*);", body):
                names += re.findall(r"[a-z]\w*", re.sub(r"\[\w+\]", "", fields))
    for name in sorted(set(names)):
        if not name.startswith("reserved") and not re.search(rf"\b{name}\b", page):
            yield f"docs/format.md: does not mention {name} of src/format/"


def headers_in_comments(path, text, known):
    """Headers that a comment names with their folder, and that are not there."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)//(.*)", line)
        for header in re.findall(r"(?<![\w/.<-])(?:\w+/)+\w+\.h\b(?! of NCCL|:\d)", comment.group(1) if comment else ""):
            if not any(top + header in known for top in ("", "src/", "include/", "sim/")):
                yield f"{path}:{number}: no such header: {header}"


def main():
    sources = "\n".join(source_tree.read(path) for path in source_tree.tracked(*SOURCES)
                        if path.suffix in (".h", ".cc", ".c", ".def", ".cmake", ".txt", ".py", ".inc", ".sql", ""))
    targets = set(re.findall(r"^([a-z]+):", source_tree.read("Makefile"), re.MULTILINE))
    command_names, cli_text = commands()
    pages = [path for path in source_tree.tracked("*.md") if str(path) != "docs/cli.md"]  # the program's own words
    problems = list(check_format_page())
    for path in pages:
        problems += check(path, source_tree.read(path), sources, command_names, cli_text, targets)
    known = {str(path) for path in source_tree.tracked("*.h")}
    for path in source_tree.tracked("src", "include", "sim"):
        if path.suffix in (".h", ".cc", ".c", ".def", ".inc"):
            problems += headers_in_comments(path, source_tree.read(path), known)
    source_tree.finish(problems, f"{len(pages)} pages and all comments cite what exists")


main()
