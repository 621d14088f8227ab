"""Runs that take copies of resource variables and give them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from onert.backend import HasParts, Part, Tensors
from onert.ir import Array, Context, ExecutionError

from .lower.command import Transfer

Call = Callable[[], None]


class Carrying:
    """Native runs and transfers in turn."""

    __slots__ = ("_calls", "parts")

    def __init__(self, found: Iterable[HasParts | Part]) -> None:
        steps = tuple(found)
        self.parts = tuple(p for step in steps for p in ((step,) if isinstance(step, Part) else step.parts))
        self._calls = tuple(step.call if isinstance(step, Part) else step for step in steps)

    def __call__(self) -> None:
        for call in self._calls:
            call()


def transfer(what: Transfer, copies: Array, tensors: Tensors, context: Context) -> Part:
    """A transfer as a call. What a run gives back is its copy itself, which the next run need not take again."""
    nbytes = int(np.prod(what.shape, dtype=np.int64)) * what.dtype.itemsize
    copy = copies[what.place : what.place + nbytes].view(what.dtype).reshape(what.shape)
    state, shape, dtype = context.state, what.shape, what.dtype

    def key() -> object:
        return what.key if what.key is not None else tensors[what.handle].array.reshape(-1)[0]

    def load() -> None:
        kept = state.get(key())
        if kept is copy:
            return
        if kept is None:
            raise ExecutionError(f"{what.label}: variable {_name(key())} is read before anything was assigned to it")
        if kept.shape != shape or kept.dtype != dtype:
            raise ExecutionError(
                f"{what.label}: variable {_name(key())} has {kept.dtype}{list(kept.shape)}, "
                f"expected {dtype}{list(shape)}"
            )
        copy[...] = kept

    def store() -> None:
        state[key()] = copy

    return Part((what.operation,), store if what.store else load)


def _name(key: object) -> str:
    return repr(key[-1]) if isinstance(key, tuple) else repr(key)
