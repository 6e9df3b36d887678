# SPDX-License-Identifier: Apache-2.0
"""The Arrow C data and stream interfaces by ctypes: capsules for others, and a reader of the three types that tables have."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Sequence


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


def _pointers(kind: Any) -> Any:
    return ctypes.POINTER(ctypes.POINTER(kind))


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", _pointers(Schema)), ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", _pointers(Array)),
    ("dictionary", ctypes.POINTER(Array)), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p)]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]

_api = ctypes.pythonapi
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_malloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", _api))
_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", _api))


def _destructor(kind: Any, name: bytes) -> ctypes.c_void_p:
    # What it uses is bound as defaults: a capsule may end after the module has.
    def destroy(capsule: int, kind: Any = kind, name: bytes = name, at: Any = _capsule_pointer, free: Any = _free,
                pointer: Any = ctypes.POINTER, cast: Any = ctypes.cast) -> None:
        address = at(capsule, name)
        held = cast(address, pointer(kind))
        if held.contents.release:
            held.contents.release(held)
        free(address)

    made = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(destroy)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return ctypes.cast(made, ctypes.c_void_p)


_DESTRUCTORS = {kind: _destructor(kind, name) for kind, name in (
    (Schema, b"arrow_schema"), (Array, b"arrow_array"), (Stream, b"arrow_array_stream"))}


def capsule(kind: Any, name: bytes, fill: Callable[[Any], None]) -> object:
    """A capsule of a new struct, which `fill` fills. It releases what a consumer leaves."""
    address = _malloc(ctypes.sizeof(kind))
    if not address:
        raise MemoryError
    ctypes.memset(address, 0, ctypes.sizeof(kind))
    try:
        fill(ctypes.cast(address, ctypes.POINTER(kind)))
    except BaseException:
        _free(address)
        raise
    return _capsule_new(address, name, _DESTRUCTORS[kind])


class Column:
    """A column of one batch; the batch keeps its buffers."""

    __slots__ = ("_array", "format", "name")

    def __init__(self, name: str, kind: str, array: Array) -> None:
        self.name = name
        self.format = kind  # "l", "L" or "U"
        self._array = array

    def __len__(self) -> int:
        return int(self._array.length)

    def valid(self) -> Optional[bytes]:
        """A bit a row, the lowest first; None: every row has a value."""
        if self._array.null_count == 0 or not self._array.buffers[0]:
            return None
        return ctypes.string_at(self._array.buffers[0], (len(self) + 7) // 8)

    def values(self) -> ctypes.Array[Any]:
        """Numbers; of a text column where each text begins, and the last ends."""
        kind: Any = ctypes.c_uint64 if self.format == "L" else ctypes.c_int64
        length = len(self) + 1 if self.format == "U" else len(self)
        return (kind * length).from_address(self._array.buffers[1])

    def to_list(self) -> list[Any]:
        valid = self.valid()
        numbers = self.values()
        if self.format == "U":
            base = self._array.buffers[2]
            data = ctypes.string_at(base, numbers[len(self)]) if numbers[len(self)] else b""
            found: list[Any] = [data[numbers[i]:numbers[i + 1]].decode() for i in range(len(self))]
        else:
            found = list(numbers)
        if valid is not None:
            for i in range(len(self)):
                if not valid[i >> 3] >> (i & 7) & 1:
                    found[i] = None
        return found


class Batches:
    """The batches of a stream, each good until the next one is asked for. `fields`: name and format of each column, also of a table
    without rows."""

    def __init__(self, fill: Callable[[Any], None]) -> None:
        self._stream = Stream()
        fill(ctypes.pointer(self._stream))
        schema = Schema()
        _check(self._stream, self._stream.get_schema(ctypes.byref(self._stream), ctypes.byref(schema)))
        columns = (schema.children[i].contents for i in range(schema.n_children))
        self.fields = [(column.name.decode(), column.format.decode()) for column in columns]
        schema.release(ctypes.byref(schema))

    def __del__(self) -> None:
        if self._stream.release:
            self._stream.release(ctypes.byref(self._stream))

    def __iter__(self) -> Iterator[Sequence[Column]]:
        array = Array()
        try:
            while True:
                _check(self._stream, self._stream.get_next(ctypes.byref(self._stream), ctypes.byref(array)))
                if not array.release:
                    return
                yield [Column(name, kind, array.children[i].contents) for i, (name, kind) in enumerate(self.fields)]
                array.release(ctypes.byref(array))
        finally:
            if array.release:
                array.release(ctypes.byref(array))


def _check(stream: Stream, code: int) -> None:
    if code != 0:
        said = stream.get_last_error(ctypes.byref(stream))
        raise OSError(code, said.decode() if said else "cannot read the table")
