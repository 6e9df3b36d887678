# SPDX-License-Identifier: Apache-2.0
"""Ask a recorded run what is wrong with it, and tell Lockstep what your own communication does.

    run = lockstep.open("trace.db")             # or a run directory, dumps, logs, archives, in any mix
    print(run.diagnose())                       # CRITICAL: rank 7 ... never called operation 1329 of ...
    frame = run.operations().to_pandas()        # or polars.DataFrame(run.operations()), pyarrow.table(...)
    run.report()                                # in a notebook: the page

In the job: groups, operations, steps and marks.

    import lockstep

    group = lockstep.Group("tensor:3", ranks=[0, 1, 2, 3])
    for number, batch in enumerate(loader):
        lockstep.step(number)
        with group.operation("allreduce", count, count, "bfloat16"):
            my_all_reduce(...)

Everything is recorded by liblockstep.so, if the process has loaded it or LOCKSTEP_LIBRARY names it, as under
`lockstep trace`; otherwise every call does nothing. No dependencies. Nothing here raises for want of a recorder.
A child of fork() records nothing if its parent had made a call before: start processes first, or use "spawn".
"""
from __future__ import annotations

import enum
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, ContextManager, Optional, Sequence, Type

from lockstep import _native

if TYPE_CHECKING:
    from lockstep._library import LockstepError
    from lockstep._run import Diagnosis, Effect, Finding, Outcome, Report, Run, Table, Who
    from lockstep._run import open_run as open

__all__ = ["Clock", "Diagnosis", "Effect", "Finding", "Group", "LockstepError", "Operation", "Outcome", "Report", "Run",
           "Table", "Who", "loaded", "mark", "open", "show_in_torch_profiler", "step"]


def __getattr__(name: str) -> Any:
    """What reads runs is imported when it is asked for: a training process that only records does without."""
    if name in __all__:
        from lockstep import _library, _run

        found = _run.open_run if name == "open" else getattr(_library if name == "LockstepError" else _run, name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'lockstep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class Clock(enum.IntEnum):
    """The clock of GPU times."""

    MONOTONIC = 1  # time.monotonic_ns()
    REALTIME = 2  # time.time_ns()
    GPU_NS = 3  # the GPU's own: %globaltimer of NVIDIA
    GPU_TICKS = 4  # the GPU's own: wall_clock64() of AMD


# Names of torch and numpy, in c10's spelling.
_TYPES = {
    "uint8": "Byte", "int8": "Char", "bool": "Bool", "int16": "Short", "uint16": "UInt16", "float16": "Half", "half": "Half",
    "bfloat16": "BFloat16", "int32": "Int", "uint32": "UInt32", "float32": "Float", "float": "Float", "int64": "Long",
    "uint64": "UInt64", "float64": "Double", "double": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
}


def _type_name(dtype: object) -> str:
    """`torch.bfloat16`, a numpy dtype, "float32", "Float" or "ncclFloat32", as NCCL or c10 spell it."""
    text = str(dtype).removeprefix("torch.")
    return _TYPES.get(text, text)


def loaded() -> bool:
    """Whether somebody records; for callers whose arguments are costly to make."""
    return _native.api() is not None


def step(number: int) -> None:
    """A training step begins."""
    if (api := _native.api()) is not None:
        api.step(number)


def mark(name: str, value: int = 0) -> None:
    """A named instant with a number. Use few distinct names."""
    if (api := _native.api()) is not None:
        api.mark(name.encode(), value)


_in_torch_profiler = False


def show_in_torch_profiler(enabled: bool = True) -> None:
    """Operations also open a `record_function` of PyTorch's while its profiler runs: ranges "lockstep::allreduce" in its own trace, whether
    or not somebody records for Lockstep. Off unless asked for; torch is never imported."""
    global _in_torch_profiler
    _in_torch_profiler = enabled


def _does_torch_profile() -> bool:
    running = getattr(sys.modules["torch.autograd.profiler"], "_is_profiler_enabled", None)
    if running is None:  # before PyTorch 2.1
        ask = getattr(sys.modules.get("torch.autograd"), "_profiler_enabled", None)
        running = ask is not None and ask()
    return bool(running)


def _torch_range(collective: str, said: str) -> Optional[ContextManager[object]]:
    profiler = sys.modules.get("torch.autograd.profiler") if _in_torch_profiler else None
    if profiler is None or not _does_torch_profile():
        return None
    return profiler.record_function("lockstep::" + collective, said)


class Operation:
    """One operation, from `with` to the end of its block, or from start() to end()."""

    __slots__ = ("_api", "_gpu_times", "_handle", "_info", "_range", "_said")

    def __init__(self, info: Optional[_native.OpInfo], said: tuple[str, str]) -> None:
        self._api = _native.api()
        self._info = info
        self._said = said  # collective, and the rest in words
        self._range: Optional[ContextManager[object]] = None
        self._handle = 0
        self._gpu_times: Optional[_native.GpuTimes] = None

    def start(self) -> Operation:
        self._range = _torch_range(*self._said)
        if self._range is not None:
            self._range.__enter__()
        if self._api is not None and self._info is not None:
            self._handle = self._api.begin(self._info)
        return self

    def end(self) -> None:
        if self._api is not None and self._handle:
            self._api.end(self._handle, self._gpu_times)
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def set_gpu_times(self, start: int, end: int, clock: Clock = Clock.MONOTONIC) -> None:
        """When the GPU worked on it; once, before or after the end."""
        if self._api is None:
            return
        self._gpu_times = _native.GpuTimes(start=start, end=end, clock=clock)
        if self._handle:
            self._api.set_gpu_times(self._handle, self._gpu_times)
            self._gpu_times = None

    def __enter__(self) -> Operation:
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.end()


class Group:
    """A group of ranks: the same name, description and ranks on all members. `ranks` are global; `rank` is the own index in
    it and is found from RANK (or Slurm's, Open MPI's, PMI's) if not given. PyTorch's Comms Id is made of the name, the ranks
    and the number of an operation: pass the name that PyTorch has, as `torch.distributed`'s `group.group_name`."""

    __slots__ = ("name", "ranks", "_handle")

    def __init__(self, name: str, ranks: Sequence[int], rank: int = -1, description: Optional[str] = None) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        api = _native.api()
        self._handle = 0 if api is None else api.declare_group(
            _native.GroupInfo.make(name, self.ranks, rank, description))

    def operation(self, collective: str, in_count: int, out_count: int, dtype: object, *, root: int = -1, peer: int = -1,
                  stream: int = 0, algorithm: Optional[str] = None, seq: Optional[int] = None,
                  is_p2p: Optional[bool] = None, is_async: Optional[bool] = None, in_split: Sequence[int] = (),
                  out_split: Sequence[int] = ()) -> Operation:
        """An operation to be used as a context manager. Counts are in elements of `dtype` (a torch or numpy type, or a
        name); `root` and `peer` are indices in the group; `stream` is e.g. `torch.cuda.current_stream().cuda_stream`; `seq`
        is its number in the group, counted here if not given; `is_p2p` says that it has a number among sends and receives,
        if `peer` does not; splits are rows or elements for each member."""
        said = (collective, "")
        if _in_torch_profiler:
            number = "" if seq is None else f", seq {seq}"
            said = (collective, f"{self.name}, {in_count} to {out_count} of {_type_name(dtype)}{number}")
        if _native.api() is None:
            return Operation(None, said)
        flags = _native.OpFlags(0)
        if seq is not None:
            flags |= _native.OpFlags.SEQ
        if is_p2p is not None:
            flags |= _native.OpFlags.P2P if is_p2p else _native.OpFlags.COLLECTIVE
        if is_async is not None:
            flags |= _native.OpFlags.ASYNC if is_async else _native.OpFlags.SYNC
        info = _native.OpInfo(
            root=root, peer=peer, flags=flags, group=self._handle, collective=collective.encode(),
            dtype=_type_name(dtype).encode(), algorithm=None if algorithm is None else algorithm.encode(), in_count=in_count,
            out_count=out_count, stream=stream, seq=0 if seq is None else seq)
        if in_split or out_split:
            info.set_splits(in_split, out_split)
        return Operation(info, said)
