# SPDX-License-Identifier: Apache-2.0
"""liblockstep-diagnose.so by ctypes: the calls of lockstep/diagnose.h."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any, Iterator, Sequence

from lockstep import _arrow

FILE = "liblockstep-diagnose.so"
FAILED = 2


class LockstepError(Exception):
    """What was named cannot be read, or a call was wrong. The text says what and where."""


def _places() -> Iterator[str]:
    if named := os.environ.get("LOCKSTEP_DIAGNOSE_LIBRARY"):
        yield named
        return
    here = pathlib.Path(__file__).resolve().parent
    yield str(here / FILE)  # a wheel
    for above in list(here.parents)[:4]:  # share/lockstep/python, or dist-packages, below a prefix
        for folder in ("lib", "lib64", *(f"lib/{machine}-linux-gnu" for machine in ("x86_64", "aarch64"))):
            if (above / folder / FILE).exists():
                yield str(above / folder / FILE)
    yield FILE + ".0"  # where the loader looks


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """The library, loaded at the first call."""
    tried = []
    for place in _places():
        try:
            found = ctypes.CDLL(place)
            break
        except OSError as failed:
            tried.append(str(failed))
    else:
        raise LockstepError(f"{FILE} cannot be loaded; LOCKSTEP_DIAGNOSE_LIBRARY can name it. " + "; ".join(tried))
    text = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
            ("lockstep_version", ctypes.c_char_p, []),
            ("lockstep_open", ctypes.c_void_p, [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, text]),
            ("lockstep_close", None, [ctypes.c_void_p]),
            ("lockstep_diagnose", ctypes.c_int, [ctypes.c_void_p, text, text]),
            ("lockstep_report", ctypes.c_int, [ctypes.c_void_p, text, text]),
            ("lockstep_table", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(_arrow.Stream), text]),
            ("lockstep_free", None, [ctypes.c_void_p])):
        call = getattr(found, name)
        call.restype, call.argtypes = result, arguments
    return found


class Handle:
    """A lockstep_run."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._library = library()
        names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
        error = ctypes.c_void_p()
        self._run = self._library.lockstep_open(names, len(paths), ctypes.byref(error))
        if not self._run:
            raise LockstepError(self._taken(error))

    def __del__(self) -> None:
        if getattr(self, "_run", None):
            self._library.lockstep_close(self._run)

    def _taken(self, text: ctypes.c_void_p) -> str:
        if not text:
            return "no memory left"
        said = ctypes.string_at(text.value or 0).decode("utf-8", "replace")
        self._library.lockstep_free(text)
        return said

    def text(self, call: str) -> tuple[int, str]:
        """(exit code, text) of a call that makes one."""
        text, error = ctypes.c_void_p(), ctypes.c_void_p()
        code = getattr(self._library, call)(self._run, ctypes.byref(text), ctypes.byref(error))
        if code == FAILED:
            raise LockstepError(self._taken(error))
        return code, self._taken(text)

    def fill_stream(self, table: str, stream: Any) -> None:
        error = ctypes.c_void_p()
        if self._library.lockstep_table(self._run, table.encode(), stream, ctypes.byref(error)) != 0:
            raise LockstepError(self._taken(error))
