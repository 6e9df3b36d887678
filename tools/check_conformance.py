#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/conformance.md is made of tests/docs/conformance.toml, and each test that it names exists. Usage: check_conformance.py [--fix]"""
import re
import sys
import tomllib

import source_tree

LIST = source_tree.ROOT / "tests/docs/conformance.toml"
PAGE = source_tree.ROOT / "docs/conformance.md"
HEAD = """# What users ask of Lockstep, and the tests that prove it

What users of other tools ask for: how Lockstep does it, how to try it, and the tests that prove it. This page is made by
`tools/check_conformance.py --fix` from `tests/docs/conformance.toml`, which also checks that each test exists. Rows say what is missing.
"""


def known_tests():
    names = set()
    for folder in ("src", "tests", "sim", "examples", "python"):
        for path in (source_tree.ROOT / folder).rglob("*_test.cc"):
            names.update(f"{suite}.{name}" for suite, name in
                         re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE))
        for path in (source_tree.ROOT / folder).rglob("CMakeLists.txt"):
            text = path.read_text()
            for name in re.findall(r"add_test\(NAME ([\w.${}]+)", text):
                # python.${test}, in foreach(test IN ITEMS a b)
                loop = re.search(r"foreach\(" + name[name.find("{") + 1:name.find("}")] + r" IN ITEMS ([^)]*)\)", text) if "${" in name else None
                names.update(re.sub(r"\$\{\w+\}", item, name) for item in (loop[1].split() if loop else [name]))
    return names


KEYS = {"asks", "how", "page", "open", "command", "tests"}


def row(number, ask):
    def cell(text):
        return text.replace("|", "\\|")

    how = ask["how"] + (f" ([page]({ask['page']}))" if "page" in ask else "") + (f". **Not:** {ask['open']}" if "open" in ask else "")
    command = f"`{ask['command']}`" if "command" in ask else ""
    return f"| {number} | {cell(ask['asks'])} | {cell(how)} | {cell(command)} | {', '.join(f'`{name}`' for name in ask['tests'])} |\n"


def main():
    users = tomllib.loads(LIST.read_text())["users"]
    tests = known_tests()
    problems = []
    page = HEAD
    for of, user in enumerate(users):
        page += f"\n## {user['title']}\n\n| # | Asked | How | Command | Tests |\n|---|---|---|---|---|\n"
        if len(user["asks"]) != user["rows"]:
            problems.append(f"{LIST.name}: \"{user['title']}\" has {len(user['asks'])} rows of the {user['rows']} that were asked")
        for number, ask in enumerate(user["asks"], 1):
            problems += [f"{LIST.name}: \"{ask['asks']}\" has a key that no page shows: {key}" for key in sorted(ask.keys() - KEYS)]
            problems += [f"{LIST.name}: no test is called {name}" for name in ask["tests"] if name not in tests]
            if not ask["tests"] and "open" not in ask:
                problems.append(f"{LIST.name}: \"{ask['asks']}\" has neither a test nor a reason")
            page += row(f"{of}.{number}", ask)
    if "--fix" in sys.argv[1:]:
        PAGE.write_text(page)
    if not PAGE.exists() or PAGE.read_text() != page:
        problems.append("docs/conformance.md is old; tools/check_conformance.py --fix writes it")
    source_tree.finish(problems, f"docs/conformance.md has {sum(len(user['asks']) for user in users)} rows")


main()
