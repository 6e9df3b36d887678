#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/: one line width, headings that links name, the glossary's words, and a bound on the words in all.

Usage: check_prose.py [--fix]    (--fix wraps paragraphs and lists anew)
Code blocks, tables, headings and HTML stay as they are. docs/writing.md may show what not to write.
"""
import re
import sys
import textwrap

import source_tree

WIDTH = 120
MOST_WORDS = 30_000
GENERATED = {"docs/cli.md": "the program's help", "docs/conformance.md": "tests/docs/conformance.toml"}
# What the glossary has another word for.
PRIVATE = ("testimony", "convict", "acquit", "rhythm", "untold", "scene", "seats", "company", "tells of", "told from", "stands still")
BULLET = re.compile(r"(\s*)([*-]|\d+\.) ")


def blocks(text):
    """(is prose, lines) in the order of the page."""
    lines, prose, in_code = [], [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        plain = in_code or fence or not line.strip() or line.lstrip().startswith(("|", "#", "<", "!["))
        if fence:
            in_code = not in_code
        if prose and (plain or BULLET.match(line)):
            yield True, prose
            prose = []
        if plain:
            yield False, [line]
        else:
            prose.append(line)
    if prose:
        yield True, prose


def wrapped(lines):
    bullet = BULLET.match(lines[0])
    first = bullet.group(0) if bullet else re.match(r"\s*", lines[0]).group(0)
    text = " ".join(line.strip() for line in lines)[len(first.lstrip()):]
    # Code spans and links with blanks in them break as any text; a line must not begin with what would be a list or a heading.
    out = textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False, break_on_hyphens=False)
    joined = []
    for line in out:
        if joined and re.match(r"\s*([*+#|>-] |[*+#|>-]$|\d+\. )", line):
            head, _, word = joined[-1].rpartition(" ")
            joined[-1], line = head, " " * len(first) + word + " " + line.strip()
        joined.append(line)
    return joined


def reflowed(text):
    out = []
    for is_prose, lines in blocks(text):
        out += wrapped(lines) if is_prose else lines
    return "\n".join(out)


def anchors(text):
    """What GitHub calls the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower()).replace(" ", "-") for title in titles}


def words(text):
    """Tokens with a letter or a digit: bars of tables and marks are none."""
    return sum(any(c.isalnum() for c in token) for token in text.split())


def dead_links(path, text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", prose):
        target = path if not link else path.parent / link
        page = source_tree.ROOT / target
        if not re.match(r"[a-z]+:", link) and page.suffix == ".md" and page.exists() and anchor not in anchors(page.read_text()):
            yield f"{path}: {link or path.name} has no heading #{anchor}"


def unused_words(pages):
    """Words of the glossary that no other page says: the page has another word for the thing, or none is needed."""
    rest = " ".join(source_tree.read(path) for path in pages if path.name != "glossary.md").lower()
    for entry in re.findall(r"^\| ([^|`]+) \|", source_tree.read("docs/glossary.md"), re.MULTILINE)[1:]:
        for word in entry.split(", "):
            if not re.search(rf"\b{re.escape(word.lower())}", rest):
                yield f"docs/glossary.md: '{word}' is on no other page"


def main():
    pages = [path for path in source_tree.tracked("README.md", "docs") if path.suffix == ".md"]
    problems, total, generated = [], 0, 0
    front = source_tree.read("docs/README.md")
    problems += unused_words(pages)
    for path in pages:
        text = source_tree.read(path)
        count = words(text)
        problems += dead_links(path, text)
        if path.parts[0] == "docs" and len(path.parts) == 2 and path.name != "README.md" and f"({path.name})" not in front:
            problems.append(f"{path}: docs/README.md does not link to it")
        if str(path) in GENERATED:
            generated += count
            continue
        total += count
        new = reflowed(text)
        if new != text:
            if "--fix" in sys.argv[1:]:
                (source_tree.ROOT / path).write_text(new)
            else:
                problems.append(f"{path}: not wrapped at {WIDTH} columns; tools/check_prose.py --fix does it")
        if path.name != "writing.md":
            for word in PRIVATE:
                if re.search(rf"\b{word}\b", text, re.IGNORECASE):
                    problems.append(f"{path}: '{word}'; docs/glossary.md and docs/writing.md have a plain word")
    if total > MOST_WORDS:
        problems.append(f"{total} words; at most {MOST_WORDS}: shorten before you add")
    source_tree.finish(problems, f"{len(pages)} pages of {total} words, and {generated} generated ones")


main()
