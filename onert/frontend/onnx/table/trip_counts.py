"""Trip counts of loops whose condition only counts, as exporters write loops over a sequence."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression
from onert.ir import DType, Operation
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.value import Value

_PRESERVING = (Cast, Copy, ExpandDims, Reshape, Squeeze)
"""Operations that preserve a number. Casts are to integers, or to floats that hold any possible trip count."""
_SLACK = {ComparisonKind.LESS: 0, ComparisonKind.LESS_EQUAL: 1}
_MIRRORED = {ComparisonKind.GREATER: ComparisonKind.LESS, ComparisonKind.GREATER_EQUAL: ComparisonKind.LESS_EQUAL}


@frozen
class _Number(Value):
    """An integer in iteration r: the `outer` operand or 0, plus `offset`, plus r if it `grows`."""

    outer: int | None
    offset: int
    grows: bool


@frozen
class LoopBody(Value):
    """A loop body in `inner`, nested in `d`. Its inputs are the iteration number, the condition and the state, which is
    `initial` at first and `following` after an iteration."""

    d: Draft
    inner: Draft
    number: int
    go: int
    state: Sequence[int]
    following: Sequence[int]
    initial: Sequence[int]

    def trip_bounds(self, condition: int) -> list[int] | None:
        """For each bound in the condition for the next iteration, how many iterations satisfy it (int64, outer draft).

        The trip count is one more than their minimum. None if the condition is anything but a conjunction of bounds.
        """
        bounds: list[tuple[_Number, _Number, int]] = []
        if not self._gather(condition, bounds):
            return None
        return [self._iterations(*bound) for bound in bounds]

    def _gather(self, condition: int, bounds: list[tuple[_Number, _Number, int]]) -> bool:
        """Collect the comparisons that must all hold; False if the condition contains anything else."""
        if condition == self.go:
            return True
        known = self.inner.value(condition)
        if known is not None:
            return known.size == 1 and bool(known.reshape(-1)[0])
        made = self._scalar_definer(condition)
        if made is None:
            return False
        op, used = made.op, made.used
        if isinstance(op, Binary) and op.kind is BinaryKind.LOGICAL_AND:
            return all(self._gather(each, bounds) for each in used)
        if isinstance(op, Comparison):
            kind = _MIRRORED.get(op.kind, op.kind)
            low, high = (self._as_number(each) for each in (used if kind is op.kind else used[::-1]))
            if kind not in _SLACK or low is None or high is None or not low.grows or high.grows:
                return False
            bounds.append((low, high, _SLACK[kind]))
            return True
        return isinstance(op, _PRESERVING) and self._gather(used[0], bounds)

    def _scalar_definer(self, operand: int) -> Operation | None:
        """The operation that produces a single element; None for an input, or for several elements."""
        type_ = self.inner.type(operand)
        plain = type_.is_static and all(d == 1 for d in type_.shape)
        return self.inner.definer(operand) if plain else None

    def _as_number(self, operand: int) -> _Number | None:
        inner = self.inner
        known = inner.value(operand)
        if known is not None:
            whole = known.size == 1 and float(known.reshape(-1)[0]).is_integer()
            return _Number(None, int(known.reshape(-1)[0]), False) if whole else None
        if operand == self.number:
            return _Number(None, 0, True)
        for outer, inside in inner.captured.items():
            if inside == operand:
                return _Number(outer, 0, False) if self._is_single_integer(self.d, outer) else None
        if operand in self.state:
            return self._of_state(self.state.index(operand))
        made = self._scalar_definer(operand)
        if made is None:
            return None
        if isinstance(made.op, Binary):
            found = self._sum(made)
            return None if found is None else self._plus(*found)
        number = self._as_number(made.used[0]) if isinstance(made.op, _PRESERVING) else None
        narrow = (
            isinstance(made.op, Cast) and inner.type(operand).dtype.itemsize < inner.type(made.used[0]).dtype.itemsize
        )
        to_float = inner.type(operand).dtype.is_float
        return None if number is None or (narrow and not number.grows and not to_float) else number

    def _is_single_integer(self, draft: Draft, operand: int) -> bool:
        type_ = draft.type(operand)
        return type_.is_static and all(d == 1 for d in type_.shape) and type_.dtype.is_integer

    def _of_state(self, at: int) -> _Number | None:
        """A state value that is unchanged, or incremented by one, in each iteration."""
        if not self._is_single_integer(self.inner, self.state[at]) or not self._is_single_integer(
            self.d, self.initial[at]
        ):
            return None
        after = self.following[at]
        while after != self.state[at]:
            made = self._scalar_definer(after)
            if made is None:
                return None
            found = self._sum(made) if isinstance(made.op, Binary) else None
            if found is not None:
                return _Number(self.initial[at], 0, True) if found == (self.state[at], 1) else None
            if not isinstance(made.op, Copy | Reshape):
                return None
            after = made.used[0]
        return _Number(self.initial[at], 0, False)

    def _sum(self, made: Operation) -> tuple[int, int] | None:
        """An operand and the constant integer added to it."""
        op = made.op
        if not isinstance(op, Binary) or op.kind is not BinaryKind.ADD or op.activation is not Activation.NONE:
            return None
        for operand, other in (made.used, made.used[::-1]):
            known = self.inner.value(other)
            if known is not None and known.size == 1 and known.dtype.kind in "iu":
                return operand, int(known.reshape(-1)[0])
        return None

    def _plus(self, operand: int, by: int) -> _Number | None:
        found = self._as_number(operand)
        return None if found is None else _Number(found.outer, found.offset + by, found.grows)

    def _iterations(self, low: _Number, high: _Number, more: int) -> int:
        """The number of iterations in which the growing number stays below the other."""
        first, bound = (self._initial_value(each) for each in (low, high))
        return ((bound - first) + more).at_least(0).operand

    def _initial_value(self, number: _Number) -> Expression:
        zero = Expression(self.d, self.d.constant(number.offset, DType.INT64))
        if number.outer is None:
            return zero
        return Expression(self.d, number.outer).cast(DType.INT64).scalar() + zero
