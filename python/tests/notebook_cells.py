# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook's cells of code, one after another, as a kernel does.

Usage: notebook_cells.py NOTEBOOK FOLDER. The cells run in the folder, which has a trace.db; prints the verdict that they got."""
import json
import os
import sys


def run(path, folder, skipped=lambda cell: False):
    """The names that the cells leave; `skipped` says of a cell's text that it is not run."""
    with open(path, encoding="utf-8") as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    names, was = {}, os.getcwd()
    os.chdir(folder)
    try:
        for cell in cells:
            if not skipped(cell):
                exec(compile(cell, path, "exec"), names)
    finally:
        os.chdir(was)
    return names


if __name__ == "__main__":
    print(run(os.path.abspath(sys.argv[1]), sys.argv[2])["diagnosis"].verdict.statement)
