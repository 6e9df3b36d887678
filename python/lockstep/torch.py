# SPDX-License-Identifier: Apache-2.0
"""Marks and names for a PyTorch job, all of them asked for. torch must have been imported; nothing is patched.

    lockstep.torch.watch(optimizer, gc=True, groups=True)  # steps, the garbage collector's runs, names of groups
    for batch in lockstep.torch.loading(loader):           # how long each batch was waited for
        ...

Without a recorder a mark costs a look at a variable; with one, a call of the library.
"""
from __future__ import annotations

import ctypes
import gc as collector
import sys
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, TypeVar

from lockstep import Group, _native

__all__ = ["Watch", "loading", "watch"]

Item = TypeVar("Item")


class Watch:
    """What watch() began; stop() ends it. Also a context manager."""

    def __init__(self) -> None:
        self._ends: list[Callable[[], object]] = []

    def stop(self) -> None:
        while self._ends:
            self._ends.pop()()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _group_declarer() -> Callable[[], None]:
    """What declares the process groups that NCCL serves when it is called, and those made since when it is called again."""
    names: dict[Any, str] = {}
    newest: Any = None  # its id and name: to hold the group itself would keep it alive
    length, is_over = 0, False

    def look() -> None:
        nonlocal names, newest, length, is_over
        # A dict keeps the order of creation, so that a new group changes its length or its last key.
        if names and len(names) == length:
            last = next(reversed(names), None)
            if (id(last), names.get(last)) == newest:
                return
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        if c10d is None or is_over:
            return
        try:
            names = c10d._world.pg_names
            last = next(reversed(names), None)
            length, newest = len(names), (id(last), names.get(last))
            _declare(c10d._world, names)
        except Exception as failed:  # a step of training must not fail for a name
            names, is_over = {}, True
            warnings.warn(f"lockstep: this PyTorch does not tell its process groups, which stay without names: {failed!r}", stacklevel=3)

    return look


def _declare(world: Any, names: Mapping[Any, str]) -> None:
    for group, name in list(names.items()):  # another thread may make one meanwhile
        if "nccl" in str(world.pg_backend_config[group]).lower():
            places: Mapping[int, int] = world.pg_group_ranks[group]
            Group(str(name), sorted(places, key=places.__getitem__), group.rank(), getattr(group, "group_desc", None))


def watch(optimizer: Optional[Any] = None, *, first_step: int = 0, gc: bool = False, groups: bool = False) -> Watch:
    """`optimizer`: a torch.optim.Optimizer; whenever its step() has ended the next training step begins, the first now, as
    number `first_step`. `gc`: marks "gc begin" and "gc end" with the generation, for collections of the last one and, of the
    younger ones, none, as they are short. `groups`: tells the names of process groups on NCCL, those of now and, at each
    step, those made since, for communicators that have none (PyTorch up to 2.11). Without a recorder it does nothing."""
    watching = Watch()
    api = _native.api()
    if api is None:
        return watching
    look = _group_declarer() if groups else None
    if look is not None:
        look()
    if optimizer is not None:
        # An argument that is made once: converting it would cost as much as the call.
        step, number = _native.without_conversion(api.step), ctypes.c_int64(first_step)
        step(number)

        def stepped(*_: object) -> None:
            number.value += 1
            step(number)

        def stepped_and_looked(*_: object) -> None:
            number.value += 1
            step(number)
            look()  # type: ignore[misc]

        watching._ends.append(optimizer.register_step_post_hook(stepped if look is None else stepped_and_looked).remove)
    if gc:
        mark, oldest = api.mark, len(collector.get_threshold()) - 1

        def collected(phase: str, info: Mapping[str, int]) -> None:
            if info["generation"] >= oldest:
                mark(b"gc begin" if phase == "start" else b"gc end", info["generation"])

        collector.callbacks.append(collected)
        watching._ends.append(lambda: collector.callbacks.remove(collected))
    return watching


def loading(loader: Iterable[Item]) -> Iterator[Item]:
    """The loader's items; each wait for one stands between the marks "load begin" and "load end", with its number."""
    api = _native.api()
    if api is None:
        yield from loader
        return
    # Arguments that are made once: converting them would cost as much as the calls.
    mark = _native.without_conversion(api.mark)
    begin, end, number = ctypes.c_char_p(b"load begin"), ctypes.c_char_p(b"load end"), ctypes.c_int64(0)
    mark(begin, number)
    try:
        for item in loader:
            mark(end, number)
            yield item
            number.value += 1
            mark(begin, number)
    except GeneratorExit:  # nobody waits for another one
        raise
    except BaseException:
        mark(end, number)
        raise
    mark(end, number)
