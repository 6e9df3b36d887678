# SPDX-License-Identifier: Apache-2.0
"""The structs and the function table of lockstep/lockstep.h, by ctypes."""
from __future__ import annotations

import ctypes
import enum
import functools
import itertools
import os
from typing import Any, Callable, Optional, Sequence

_SYMBOL = "lockstep_api_v1"


class _Sized(ctypes.Structure):
    """A struct whose first field is its own size."""

    def __init__(self, **fields: object) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class GroupInfo(_Sized):
    _fields_ = [("size", ctypes.c_uint32), ("rank", ctypes.c_int32), ("name", ctypes.c_char_p),
                ("ranks", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_int32), ("start", ctypes.c_int32),
                ("stride", ctypes.c_int32), ("reserved", ctypes.c_int32), ("description", ctypes.c_char_p)]

    @classmethod
    def make(cls, name: str, ranks: Sequence[int], rank: int, description: Optional[str]) -> GroupInfo:
        members = (ctypes.c_int32 * len(ranks))(*ranks)
        return cls(rank=rank, name=name.encode(), ranks=members, count=len(ranks), start=-1, stride=-1,
                   description=None if description is None else description.encode())


class OpFlags(enum.IntFlag):
    SEQ = 1
    P2P = 2
    COLLECTIVE = 4
    ASYNC = 8
    SYNC = 16


class OpInfo(_Sized):
    _fields_ = [("size", ctypes.c_uint32), ("root", ctypes.c_int32), ("peer", ctypes.c_int32), ("flags", ctypes.c_uint32),
                ("group", ctypes.c_uint64), ("collective", ctypes.c_char_p), ("algorithm", ctypes.c_char_p),
                ("dtype", ctypes.c_char_p), ("in_count", ctypes.c_uint64), ("out_count", ctypes.c_uint64),
                ("stream", ctypes.c_void_p), ("seq", ctypes.c_int64), ("in_split", ctypes.POINTER(ctypes.c_int64)),
                ("out_split", ctypes.POINTER(ctypes.c_int64)), ("in_splits", ctypes.c_uint32), ("out_splits", ctypes.c_uint32)]

    def set_splits(self, in_split: Sequence[int], out_split: Sequence[int]) -> None:
        """Rows or elements for each member; empty: even."""
        self.in_split, self.in_splits = (ctypes.c_int64 * len(in_split))(*in_split), len(in_split)
        self.out_split, self.out_splits = (ctypes.c_int64 * len(out_split))(*out_split), len(out_split)


class GpuTimes(_Sized):
    _fields_ = [("size", ctypes.c_uint32), ("clock", ctypes.c_uint32), ("start", ctypes.c_uint64), ("end", ctypes.c_uint64)]


class Counter(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("next", ctypes.c_int64)]


# Calls that never block for long: they keep the interpreter lock, which is cheaper than to hand it over.
class Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("version", ctypes.c_uint32),
                ("declare_group", ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(GroupInfo))),
                ("begin", ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(OpInfo))),
                ("end", ctypes.PYFUNCTYPE(None, ctypes.c_uint64, ctypes.POINTER(GpuTimes))),
                ("set_gpu_times", ctypes.PYFUNCTYPE(None, ctypes.c_uint64, ctypes.POINTER(GpuTimes))),
                ("step", ctypes.PYFUNCTYPE(None, ctypes.c_int64)),
                ("mark", ctypes.PYFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64)),
                ("count", ctypes.PYFUNCTYPE(None, ctypes.POINTER(Counter)))]


def counting(table: Any, name: Optional[bytes], first: int) -> Callable[[], None]:
    """What, at each call, records a mark of that name, or a step if it is None, with the next number. For one thread."""
    if table.size >= ctypes.sizeof(Api):
        # One argument, a pointer that is made once: converting arguments costs more than the call.
        counter = Counter(name, first)
        return functools.partial(ctypes.PYFUNCTYPE(None)(ctypes.cast(table.count, ctypes.c_void_p).value), ctypes.pointer(counter))
    numbers = itertools.count(first)  # a recorder of before there was such a call
    return lambda: table.step(next(numbers)) if name is None else table.mark(name, next(numbers))


def _find() -> Optional[Api]:
    """As lockstep.h looks: what the process has loaded, else what LOCKSTEP_LIBRARY names."""
    for name in (None, os.environ.get("LOCKSTEP_LIBRARY")):
        if name == "":
            continue
        try:
            table = Api.in_dll(ctypes.CDLL(name), _SYMBOL)
        except (OSError, ValueError):
            continue
        if table.size >= Api.count.offset:  # a later member is looked for where it is used
            return table
    return None


_api: Optional[Api] = None
_looked = False


def api() -> Optional[Api]:
    """The function table, or None. Looked for once, at the first call."""
    global _api, _looked
    if not _looked:
        _api, _looked = _find(), True
    return _api
