"""The values of all inputs in all runs: one item after another, singly or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError
from onert.ir.process import imports
from onert.ir.value import Value

from .input_values import InputValue, Stream

if TYPE_CHECKING:
    from fractions import Fraction

LIMIT = 1000
"""How many items are run without --limit."""


@frozen(eq=False)
class Feed(Value):
    """The values of the inputs.

    Each of `items` has a value for each input; only the one at `position` differs between items. `count` is the number
    of items, None if unknown; `cut` is the number before a limit was applied, None if all are used; `pieces` and
    `continuous` are as in `Stream`; `rate` is the number of items per second if they are frames of a video.
    """

    items: Iterator[tuple[InputValue, ...]]
    count: int | None = 1
    position: int | None = None
    pieces: bool = False
    continuous: bool = False
    cut: int | None = None
    rate: Fraction | None = None


def one_of(info: TensorInfo, batch: int | None) -> tuple[TensorInfo, int]:
    """The type of a single item of an input, and the batch size.

    The batch size of an input of pictures is its first dimension if that is larger than 1. Raises ExecutionError if
    `batch` is given for an input without a batch dimension, or differs from the model's own batch size.
    """
    dims = info.open_shape
    own = dims[0] if len(dims) == 4 and dims[0] is not None and dims[0] > 1 else 1
    single = evolve(info, shape=(1, *dims[1:]), signature_shape=None) if dims else info
    plane_of = imports.module("onert.tools.inputs.images").plane_of
    if own > 1 and plane_of(info) is None and plane_of(single) is not None:
        if batch not in (None, own):
            raise ExecutionError(f"--batch is {batch}, but input {info.name!r} takes {own} pictures at once")
        return single, own
    if batch in (None, 1):
        return info, 1
    if len(dims) < 2 or dims[0] not in (None, 1):
        raise ExecutionError(
            f"--batch is {batch}, but input {info.name!r} has shape {list(dims)}, which has no dimension for a batch"
        )
    assert batch is not None
    return single, batch


def feed(streams: Mapping[int, Stream], limit: int | None) -> Feed:
    """Combine the streams of all inputs, of which at most one may have several items.

    `limit` (default LIMIT) bounds the number of items. Raises ExecutionError if two streams have several items.
    """
    many = [position for position, each in streams.items() if each.count != 1]
    if len(many) > 1:
        raise ExecutionError("several inputs have more than one item each, expected at most one such input")
    once = {position: next(each.items) for position, each in streams.items() if position not in many}
    if not many:
        return Feed(iter([tuple(once[i] for i in range(len(streams)))]))
    (position,) = many
    each = streams[position]
    most = LIMIT if limit is None else limit
    count = None if each.count is None else min(each.count, most)
    cut = each.count if each.count is not None and each.count > most else None
    items = (
        tuple(given if i == position else once[i] for i in range(len(streams))) for given in islice(each.items, most)
    )
    return Feed(items, count, position, each.pieces, each.continuous, cut, each.rate)


def batches(items: Iterator[tuple[InputValue, ...]], size: int) -> Iterator[list[tuple[InputValue, ...]]]:
    """Items in groups of `size`; the last group may be smaller."""
    while group := list(islice(items, size)):
        yield group


def together(group: Sequence[tuple[InputValue, ...]], position: int, size: int) -> list[Array]:
    """The inputs of a batch: items concatenated along the first dimension, the last one repeated to fill it."""
    filled = list(islice(chain(group, [group[-1]] * size), size))
    arrays = [given.array for given in group[0]]
    shapes = {item[position].array.shape for item in filled}
    if len(shapes) > 1:
        raise ExecutionError(
            f"a batch has items with shapes {' and '.join(str(list(s)) for s in sorted(shapes))}, expected one shape"
        )
    arrays[position] = np.concatenate([item[position].array for item in filled])
    return arrays


def apart(outputs: Sequence[Array], infos: Sequence[TensorInfo], size: int, count: int) -> list[list[Array]]:
    """Split the outputs of a batch into those of its items. Raises ExecutionError if an output is not batched."""
    for info, array in zip(infos, outputs, strict=True):
        if array.ndim == 0 or array.shape[0] != size:
            raise ExecutionError(
                f"output {info.name!r} has shape {list(array.shape)}, expected the batch size {size} as the first "
                "dimension; the model does not support batches"
            )
    return [[array[at : at + 1] for array in outputs] for at in range(count)]
