"""Runs that take copies of resource variables and give them back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import call as invoke
from operator import setitem
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.backend import HasParts, Part, Tensors
from onert.ir import Array, Context, ExecutionError
from onert_llvm.command.command import Transfer

Call = Callable[[], None]


@frozen(eq=False)
class Carry(Part):
    """A transfer alone. `key` is the variable's, where that is known before the run, `copy` what the run works on."""

    key: Hashable | None
    copy: Array
    store: bool
    state: dict[Any, Any]


class Carrying:
    """Native runs and transfers in turn."""

    __slots__ = ("_calls", "indivisible", "parts")

    def __init__(self, found: Iterable[HasParts | Part]) -> None:
        steps = tuple(_same_objects(found))
        self.parts = tuple(p for step in steps for p in ((step,) if isinstance(step, Part) else step.parts))
        self.indivisible = _is_indivisible(steps)
        """Whether variables change in one native call that cannot fail: what is taken before it lies where the call
        works from then on, and nothing else is given back."""
        self._calls = tuple(call for kind, row in groupby(steps, _kind) for call in _calls(kind, tuple(row)))

    def __call__(self) -> None:
        for call in self._calls:
            call()


def _same_objects(steps: Iterable[HasParts | Part]) -> Iterator[HasParts | Part]:
    """The steps, equal keys one object (which a dictionary finds without a closer look), and views of one place too."""
    keys: dict[Hashable, Hashable] = {}
    views: dict[tuple[Hashable, ...], Array] = {}
    for step in steps:
        if isinstance(step, Carry):
            place = (step.copy.ctypes.data, step.copy.shape, step.copy.dtype)
            yield evolve(step, key=keys.setdefault(step.key, step.key), copy=views.setdefault(place, step.copy))
        else:
            yield step


def _is_indivisible(steps: Sequence[HasParts | Part]) -> bool:
    native = [at for at, step in enumerate(steps) if not isinstance(step, Carry)]
    first = min(native, default=len(steps))
    taken = {s.key for s in steps[:first] if isinstance(s, Carry) and not s.store}
    rest = [s for s in steps[first:] if isinstance(s, Carry)]
    return (
        len(native) <= 1
        and all(getattr(steps[at], "indivisible", False) for at in native)
        and not any(getattr(steps[at], "may_fail", False) and any(s.store for s in rest) for at in native)
        and None not in taken
        and all(s.store and s.key in taken for s in rest)
    )


def _kind(step: HasParts | Part) -> bool | None:
    """Whether a step gives a variable back, or takes one, of a known key; None for any other."""
    return step.store if isinstance(step, Carry) and step.key is not None else None


def _calls(kind: bool | None, steps: tuple[Any, ...]) -> Iterable[Call]:
    """The steps of a kind as calls: transfers of one kind in a row as one."""
    if kind is None:
        return [step.call if isinstance(step, Part) else step for step in steps]
    state = steps[0].state
    if kind:
        return [partial(state.update, {step.key: step.copy for step in steps})]
    taken = tuple((step.key, step.copy, step.call) for step in steps)

    def take() -> None:
        get = state.get
        for key, copy, call in taken:
            if get(key) is not copy:
                call()
                # Under this very key, and at once: a signal handler that raises must not come between.
                deque(map(invoke, (partial(state.pop, key), partial(setitem, state, key, copy))), 0)

    return [take]


def transfer(what: Transfer, copies: Array, tensors: Tensors, context: Context) -> Carry:
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

    return Carry((what.operation,), store if what.store else load, what.key, copy, what.store, state)


def _name(key: object) -> str:
    return repr(key[-1]) if isinstance(key, tuple) else repr(key)
