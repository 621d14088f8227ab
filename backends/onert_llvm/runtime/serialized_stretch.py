"""Stretched kernels as stored on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import astuple, evolve

from onert.ir import Array
from onert.ir.symbolic.functions import name_of

from .aligned_memory import Aligned, Elements, NamedFunction
from .loaded_code import number_functions
from .native_kernel import NativeKernel
from .serialized_kernel import SerializedStretch, called
from .stretched_kernel import Change, StretchedKernel


def serialized(kernel: StretchedKernel, triple: str, numbers: bytes) -> SerializedStretch | None:
    """A stretched kernel to store, with the object file of `numbers.ll`. None if a constant is computed by a function
    that only this process has."""
    computed = tuple((at, _as_data(function), given) for at, function, given in kernel.computed)
    if any(function is None for _, function, _ in computed):
        return None
    lists = tuple(
        tuple(zip(called([command for command, _ in listed]), (idle for _, idle in listed), strict=True))
        for listed in kernel.lists
    )
    changes = tuple(tuple(astuple(change, recurse=False) for change in each) for each in kernel.changes)
    widest = evolve(kernel.widest, commands=(), sequential=(), specs={})
    return SerializedStretch(widest, lists, changes, computed, triple, numbers)


def _as_data(function: Callable[..., Array]) -> Any:
    """The function as data from which another process computes the same constant; None if there is none."""
    if not isinstance(function, Aligned):
        return function if isinstance(function, Elements | NamedFunction) else None
    inner: Any = function.function
    plain = partial(inner) if not isinstance(inner, partial) else inner
    name = None if plain.keywords else name_of(plain.func)
    return None if name is None else NamedFunction(name, plain.args)


def deserialized(kept: SerializedStretch, kernel: NativeKernel) -> StretchedKernel:
    """The stretched kernel in this process, beside the kernel of the same sequence for one set of lengths."""
    commands = [tuple(command for command, _ in listed) for listed in kept.lists]
    widest = evolve(kept.widest, commands=commands[0], sequential=commands[1] if commands[1:] else ())
    changes = tuple(tuple(Change(*fields) for fields in each) for each in kept.changes)
    functions = number_functions(kept.triple, lambda: kept.numbers)
    return StretchedKernel(kernel, widest, kept.lists, changes, kept.computed, functions)
