# SPDX-License-Identifier: Apache-2.0
"""Marks for a PyTorch job, all of them asked for by name. torch must have been imported; nothing is patched.

    lockstep.torch.watch(optimizer=optimizer, gc=True)     # steps, and the garbage collector's runs
    for batch in lockstep.torch.loading(loader):           # how long each batch was waited for
        ...

Without a recorder a mark costs a look at a variable; with one, a call of the library.
"""
from __future__ import annotations

import gc as collector
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, TypeVar

from lockstep import mark, step

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


def watch(optimizer: Optional[Any] = None, *, first_step: int = 0, gc: bool = False) -> Watch:
    """`optimizer`: a torch.optim.Optimizer; whenever its step() has ended the next training step begins, the first now, as
    number `first_step`. `gc`: marks "gc begin" and "gc end" with the generation, for collections of the last one and, of the
    younger ones, none, as they are short."""
    watching = Watch()
    if optimizer is not None:
        number = first_step
        step(number)

        def stepped(*_: object) -> None:
            nonlocal number
            number += 1
            step(number)

        watching._ends.append(optimizer.register_step_post_hook(stepped).remove)
    if gc:
        oldest = len(collector.get_threshold()) - 1

        def collected(phase: str, info: Mapping[str, int]) -> None:
            if info["generation"] >= oldest:
                mark("gc begin" if phase == "start" else "gc end", info["generation"])

        collector.callbacks.append(collected)
        watching._ends.append(lambda: collector.callbacks.remove(collected))
    return watching


def loading(loader: Iterable[Item]) -> Iterator[Item]:
    """The loader's items; each wait for one stands between the marks "load begin" and "load end", with its number."""
    items = iter(loader)
    number = 0
    while True:
        mark("load begin", number)
        try:
            item = next(items)
        except StopIteration:
            return
        finally:
            mark("load end", number)
        yield item
        number += 1
