#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md is what the program says about itself. Usage: check_cli_page.py [--fix] [BUILD_FOLDER]"""
import pathlib
import re
import subprocess
import sys

import source_tree

PAGE = source_tree.ROOT / "docs/cli.md"


def main():
    words = sys.argv[1:]
    build = pathlib.Path(next((word for word in words if word != "--fix"), source_tree.ROOT / "build/release"))
    program = build / "bin/lockstep"

    def text(*arguments):
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    overview = text("help")
    commands = re.findall(r"^  ([a-z]+)  ", overview.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    page = ("# The command line\n\nWhat `lockstep help` prints. This page is made by `tools/check_cli_page.py --fix`; `man lockstep` says the same.\n"
            f"\n```\n{overview}\n```\n")
    for command in commands:
        page += f"\n## {command}\n\n```\n{text('help', command)}\n```\n"
    if "--fix" in words:
        PAGE.write_text(page)
    stale = not PAGE.exists() or PAGE.read_text() != page
    source_tree.finish(["docs/cli.md is old; tools/check_cli_page.py --fix writes it"] if stale else [],
                       f"docs/cli.md shows {len(commands)} commands")


main()
