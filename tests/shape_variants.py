"""Variants of operations' cases with other ranks and with empty dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import numpy as np
from attrs import evolve
from cases.case import Case

from onert.ir import Array, OnertError, RuleError, infer

RANKS = range(7)
_MANY = 6


def variants(case: Case, first: int = 0, step: int = 1) -> Iterator[Case]:
    """The case at every rank from 0 to 6 and with each dimension of its operands empty, if its operation accepts that.

    Operands change one at a time and all together; operands that name axes or have an entry per axis are adapted. Of
    all variants, every `step`-th from the `first` on is tried.
    """
    whole = list(_distinct([case, *_ranked(case)]))
    every = _distinct(chain(whole, *map(_emptied, whole)))
    yield from filter(_accepts, islice(every, first, None, step))


def _distinct(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases that differ from those before them in a shape or in small integers, on which results' shapes depend."""
    seen = set()
    for each in cases:
        key = tuple(None if a is None else (a.shape, a.tobytes() if _small(a) else b"") for a in each.inputs)
        if key not in seen:
            seen.add(key)
            yield each


def _small(array: Array) -> bool:
    return array.dtype.kind in "iu" and array.size < 64


def _accepts(case: Case) -> bool:
    try:
        return infer(case.op, case.input_types(known=True)) is not None
    except (OnertError, RuleError):
        return False


def _together(case: Case) -> Iterator[tuple[int, ...]]:
    """Positions of operands that change together: each alone, those of equal shape, and all.

    For operations with many operands, whose shapes all depend on one another, only the first one and all.
    """
    there = [i for i, a in enumerate(case.inputs) if a is not None]
    groups = {(there[0],), tuple(there)} if there else set()
    if len(there) <= _MANY:
        shapes = [np.shape(a) for a in case.inputs]
        groups |= {(i,) for i in there} | {tuple(j for j in there if shapes[j] == shapes[i]) for i in there}
    yield from sorted(groups)


def _ranked(case: Case) -> Iterator[Case]:
    for group in _together(case):
        for rank in RANKS:
            arrays = {i: at_rank(a, rank) for i in group if (a := case.inputs[i]) is not None}
            plain = _with(case, arrays)
            yield plain
            for i in arrays:
                before = case.inputs[i]
                assert before is not None
                yield from _followed(plain, group, before.ndim, rank)


def at_rank(array: Array, rank: int) -> Array:
    """The array with dimensions of 1 prepended, or its first slice along the dimensions that are removed."""
    while array.ndim > rank and len(array):
        array = array[0, ...]
    if array.ndim > rank:
        return array
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _followed(case: Case, group: tuple[int, ...], before: int, after: int) -> Iterator[Case]:
    """The case with operands that have an entry for each axis, or name axes, adapted to the new rank."""
    more = after - before
    candidates: list[dict[int, Array]] = [{}]
    for i, array in enumerate(case.inputs):
        if array is None or i in group or array.dtype not in (np.int32, np.int64):
            continue
        options = [array]
        if array.ndim >= 1 and len(array) == before:
            options += _stretched(array, more)
        elif array.size == 1:
            options += [array + array.dtype.type(more)] if more > 0 else []
        candidates = [{**c, i: o} for c in candidates for o in options][:64]
    yield from (_with(case, c) for c in candidates)


def _stretched(array: Array, more: int) -> list[Array]:
    if more <= 0:
        rest = array[-more:]
        return [rest, rest + array.dtype.type(more)] if more else []
    shape = (more, *array.shape[1:])
    fronts = [np.full(shape, value, array.dtype) for value in (0, 1)]
    return [np.concatenate([front, array]) for front in fronts] + [
        np.concatenate([np.arange(more, dtype=array.dtype).reshape(-1, *(1,) * (array.ndim - 1)), array + more])
        for _ in range(array.ndim == 1)
    ]


def _emptied(case: Case) -> Iterator[Case]:
    for group in _together(case):
        most = max((np.ndim(case.inputs[i]) for i in group), default=0)
        for axis in range(-most, 0):
            arrays = {}
            for i in group:
                array = case.inputs[i]
                if array is not None and array.ndim >= -axis:
                    arrays[i] = np.take(array, [], axis)
            yield _with(case, arrays)


def _with(case: Case, arrays: dict[int, Array]) -> Case:
    inputs = tuple(arrays.get(i, a) for i, a in enumerate(case.inputs))
    return evolve(case, inputs=inputs, expected=None)
