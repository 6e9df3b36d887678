# SPDX-License-Identifier: Apache-2.0
"""The `lockstep` command of a wheel, and `python -m lockstep`: the program that came with the module, or the one on PATH."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = str(pathlib.Path(__file__).resolve().parent / "native" / "bin" / "lockstep")
    if not os.path.exists(program):
        program = shutil.which("lockstep") or ""
    if not program:
        sys.exit("lockstep: the program is neither with the module nor on PATH")
    os.execv(program, ["lockstep", *sys.argv[1:]])


if __name__ == "__main__":
    main()
