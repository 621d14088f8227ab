"""All inputs of all runs: what each is given, one item after the other, alone or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, islice

import numpy as np
from attrs import evolve, frozen

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError
from onert.ir.value import Value

from .files import Stream
from .given import Given
from .images import plane_of

LIMIT = 1000
"""Items that are run where nobody says how many."""


@frozen(eq=False)
class Feed(Value):
    """What the inputs are given.

    `items` has a value for each input; all but that at `position` are the same in every item. `count` is how many items
    there are, None where only the end tells; `cut` of how many they are the first, None where they are all; `rate` how
    many a second, where they are frames of a video.
    """

    items: Iterator[tuple[Given, ...]]
    count: int | None = 1
    position: int | None = None
    pieces: bool = False
    continuous: bool = False
    cut: int | None = None
    rate: Fraction | None = None


def one_of(info: TensorInfo, batch: int | None) -> tuple[TensorInfo, int]:
    """What a single item of an input is, and how many go in at once.

    An input of pictures may have a first dimension of more than 1. ExecutionError where a batch is asked of an input
    that has no dimension for it.
    """
    dims = info.open_shape
    own = dims[0] if len(dims) == 4 and dims[0] is not None and dims[0] > 1 else 1
    single = evolve(info, shape=(1, *dims[1:]), signature_shape=None) if dims else info
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
    """The items of several inputs' streams, of which one may have more than one item.

    At most `limit` items, LIMIT without. ExecutionError where two streams have more than one.
    """
    many = [position for position, each in streams.items() if each.count != 1]
    if len(many) > 1:
        raise ExecutionError("several inputs are given more than one file each, expected one such input")
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


def batches(items: Iterator[tuple[Given, ...]], size: int) -> Iterator[list[tuple[Given, ...]]]:
    """Items in groups of a size; the last group may be smaller."""
    while group := list(islice(items, size)):
        yield group


def together(group: Sequence[tuple[Given, ...]], position: int, size: int) -> list[Array]:
    """The inputs of a batch: items one after the other along the first dimension, the last repeated to fill it."""
    filled = list(islice(chain(group, [group[-1]] * size), size))
    arrays = [given.array for given in group[0]]
    shapes = {item[position].array.shape for item in filled}
    if len(shapes) > 1:
        raise ExecutionError(
            f"a batch has items of shapes {' and '.join(str(list(s)) for s in sorted(shapes))}, expected one shape"
        )
    arrays[position] = np.concatenate([item[position].array for item in filled])
    return arrays


def apart(outputs: Sequence[Array], infos: Sequence[TensorInfo], size: int, count: int) -> list[list[Array]]:
    """Outputs of a batch for each of its items; ExecutionError where one is no batch."""
    for info, array in zip(infos, outputs, strict=True):
        if array.ndim == 0 or array.shape[0] != size:
            raise ExecutionError(
                f"output {info.name!r} has shape {list(array.shape)}, expected {size} along the first dimension, as "
                "many as the batch; the model takes no batches"
            )
    return [[array[at : at + 1] for array in outputs] for at in range(count)]
