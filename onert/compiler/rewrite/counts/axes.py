"""Operations on tensors of which first entries count along several axes, axis by axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from attrs import frozen

from onert.ir import CallTypes, Op
from onert.ir.value import Value

from .first_entries import Moved, moved

MOST_TRIED = 64
"""Ways in which axes of operands may belong together that are looked at."""

Axes = Sequence[Mapping[int, int]]
"""For each operand the axes along which first entries count, with how many do."""


@frozen
class Together(Value):
    """Axes of operands, one of each at most, along which equally many entries count, and how they are treated alike."""

    count: int
    axes: tuple[int | None, ...]
    how: Moved


def apart(op: Op, types: CallTypes, axes: Axes) -> list[Together] | None:
    """How an operation on first entries runs on the whole tensors, of the types given: each axis that counts by itself,
    with those of other operands that it goes with. None where it cannot.

    What holds for all tensors along one axis holds for those that are cut along others, so axes need not know of one
    another.
    """
    first = next((at for at, each in enumerate(axes) if each), None)
    if first is None:
        return []
    axis, count = next(iter(axes[first].items()))
    choices = [
        (axis,) if at == first else (*(a for a, n in each.items() if n == count), None) if at > first else (None,)
        for at, each in enumerate(axes)
    ]
    for chosen in islice(product(*choices), MOST_TRIED):
        how = moved(op, types, chosen)
        if how is not None:
            rest = [{a: n for a, n in each.items() if a != own} for each, own in zip(axes, chosen, strict=True)]
            behind = apart(op, types, rest)
            if behind is not None:
                return [Together(count, chosen, how), *behind]
    return None


def chosen_axes(axes: Axes) -> list[tuple[int | None, ...]]:
    """One axis of each operand, or none, in some ways."""
    return list(islice(product(*((*each, None) if each else (None,) for each in axes)), MOST_TRIED))
