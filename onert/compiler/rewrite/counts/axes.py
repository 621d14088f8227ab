"""Operations on tensors with valid first entries along several axes, handled axis by axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from attrs import frozen

from onert.ir import CallTypes, Op
from onert.ir.value import Value

from .first_entries import AxisRule, axis_rule

MOST_TRIED = 64
"""How many ways of matching the operands' axes are tried."""

Axes = Sequence[Mapping[int, int]]
"""For each operand, its counted axes with their numbers of valid entries."""


@frozen
class MatchedAxes(Value):
    """Axes of operands, at most one of each, with the same number of valid entries, and how they move."""

    count: int
    axes: tuple[int | None, ...]
    rule: AxisRule


def match_axes(op: Op, types: CallTypes, axes: Axes) -> list[MatchedAxes] | None:
    """How an operation on first entries runs on whole tensors of the given types: each counted axis separately, with
    the matching axes of other operands. None if it cannot.

    A rule that holds along one axis for all tensors also holds for tensors that are cut along other axes, so the axes
    are independent.
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
        rule = axis_rule(op, types, chosen)
        if rule is not None:
            remaining = [{a: n for a, n in each.items() if a != used} for each, used in zip(axes, chosen, strict=True)]
            others = match_axes(op, types, remaining)
            if others is not None:
                return [MatchedAxes(count, chosen, rule), *others]
    return None


def axis_choices(axes: Axes) -> list[tuple[int | None, ...]]:
    """Combinations of one axis, or none, of each operand; at most `MOST_TRIED`."""
    return list(islice(product(*((*each, None) if each else (None,) for each in axes)), MOST_TRIED))
