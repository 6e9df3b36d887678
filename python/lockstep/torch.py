# SPDX-License-Identifier: Apache-2.0
"""Marks and names for a PyTorch job, all of them asked for. torch must have been imported; nothing is patched.

    lockstep.torch.watch(optimizer, gc=True, groups=True)  # steps, the garbage collector's runs, names of groups
    for batch in lockstep.torch.loading(loader):           # how long each batch was waited for
        ...

Without a recorder a mark costs a look at a variable; with one, a call of the library.
"""
from __future__ import annotations

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


def _with_groups(step: Callable[[], object]) -> Callable[..., None]:
    """A hook that calls `step`, then declares the process groups that NCCL serves and that were made since the last time."""
    names: Mapping[Any, str] = {}
    newest: Optional[str] = None
    length, is_over = 0, False

    def look() -> None:
        nonlocal names, newest, length, is_over
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        if c10d is None or is_over:
            return
        try:
            names = c10d._world.pg_names
            length, newest = len(names), next(reversed(names.values()), None)
            _declare(c10d._world, names)
        except Exception as failed:  # a step of training must not fail for a name
            names, is_over = {}, True
            warnings.warn(f"lockstep: this PyTorch does not tell its process groups, which stay without names: {failed!r}", stacklevel=3)

    def stepped_and_looked(*_: object) -> None:
        step()
        # A dict keeps the order of creation, so that a new group changes its length or its last name.
        if not names or len(names) != length or next(reversed(names.values()), None) != newest:
            look()

    return stepped_and_looked


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
    step = (lambda: None) if optimizer is None else _native.counting(api, None, first_step)
    stepped = _with_groups(step) if groups else lambda *_: step()
    stepped()
    if optimizer is not None:
        watching._ends.append(optimizer.register_step_post_hook(stepped).remove)
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
    begin, end = (_native.counting(api, name, 0) for name in (b"load begin", b"load end"))
    begin()
    try:
        for item in loader:
            end()
            yield item
            begin()
    except GeneratorExit:  # nobody waits for another one
        raise
    except BaseException:
        end()
        raise
    end()
