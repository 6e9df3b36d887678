# SPDX-License-Identifier: Apache-2.0
"""What the checks share: the tracked files of the tree and how a failing check reports."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(*patterns):
    """Files that git tracks or would track (not the ignored ones), as paths relative to the root."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(pathlib.Path(name) for name in set(names) if (ROOT / name).is_file())


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def finish(problems, summary):
    """Prints the problems, or the summary when there are none, and exits accordingly."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems" if problems else summary)
    sys.exit(1 if problems else 0)
