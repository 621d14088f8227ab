"""A subgraph that is being made: operations are added, and computed at once where all that they read is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir import Array, Constant, DType, Op, Operand, Operation, Quantization, RuleError, TensorType
from onert.ir.analysis.evaluate import evaluate
from onert.ir.analysis.inference import infer, shapes_ok
from onert.ir.builder import Making
from onert.ir.op import Effect
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.process.budget import Budget
from onert.ir.shape import num_elements
from onert.ir.types import CallTypes

from .known_values import Known, derive, of_constant

_FOLDED = 1 << 16
"""Elements of a constant that may be larger than all that it is computed from."""
_OPERATION = 10
"""Steps of the budget that an operation takes."""


class Draft(Making):
    """Operands and operations of one subgraph; `place` says of which node, for messages and locations."""

    def __init__(self, name: str, steps: Budget, memory: Budget) -> None:
        super().__init__(name)
        self.steps = steps
        self.memory = memory
        self.place = ""
        self.captured: dict[int, int] = {}
        """Operands of the enclosing subgraph, and the inputs that stand for them."""
        self._known: dict[int, Known] = {}

    def value(self, operand: int) -> Array | None:
        """The elements of a constant."""
        return self.type(operand).value

    def known(self, operand: int) -> Known:
        """What is known of the elements of a small tensor of integers."""
        found = self._known.get(operand)
        return of_constant(self.type(operand)) if found is None else found

    def definer(self, operand: int) -> Operation | None:
        """The operation that gives an operand; None for inputs and constants."""
        return next((each for each in reversed(self._operations) if operand in each.outputs), None)

    @property
    def size(self) -> int:
        """How many operands there are so far."""
        return len(self._operands)

    def named(self, operand: int) -> str:
        return self._operands[operand].name

    def name_operand(self, operand: int, name: str) -> None:
        """Give a name to an operand that has none."""
        if not self._operands[operand].name:
            self._operands[operand] = evolve(self._operands[operand], name=name)

    def declare(self, operand: int, type_: TensorType) -> None:
        """Take a file's word for the shape of a result of which not even the rank is known."""
        self._operands[operand] = evolve(self._operands[operand], type=type_)

    def is_input(self, operand: int) -> bool:
        return operand in self.inputs

    def constant(self, elements: Array | Sequence[Any] | float, dtype: DType | None = None, name: str = "") -> int:
        """A constant; without `dtype` its element type is NumPy's."""
        array = np.asarray(elements, None if dtype is None else dtype.numpy)
        kind = DType.from_numpy(array.dtype) if dtype is None else dtype
        return self._operand(Operand(TensorType(kind, array.shape), name, Constant(array)))

    def add(self, op: Op, *operands: int | None) -> int:
        """An operation with one result, which is given."""
        (result,) = self.add_many(op, *operands)
        return result

    def add_many(self, op: Op, *operands: int | None) -> tuple[int, ...]:
        """An operation, or what it gives where that is known; RuleError where it refuses its operands."""
        self.steps.spend(_OPERATION, "reading its nodes")
        given = list(operands)
        while given and given[-1] is None and len(given) > 1:
            given.pop()
        types = tuple(None if i is None else self.type(i) for i in given)
        results = self._inferred(op, types)
        folded = self._folded(op, types, results)
        if folded is not None:
            return folded
        known = None
        if len(results) == 1:
            known = derive(op, types, [None if i is None else self.known(i) for i in given])
            if known is not None and None not in known.flat:
                return (self.constant(known.astype(results[0].dtype.numpy), results[0].dtype),)
        outputs = tuple(self._operand(Operand(t)) for t in results)
        if known is not None:
            self._known[outputs[0]] = known
        self._operations.append(Operation(op, tuple(given), outputs, self.place))
        return outputs

    def _inferred(self, op: Op, types: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        try:
            results = infer(op, types)
        except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
            raise RuleError(f"{op.label}: {type(error).__name__}: {error}") from error
        if results is None:
            raise RuleError(f"{op.label} is given a tensor of which not even the number of dimensions is known")
        for result in results:
            shapes_ok(result)
        return results

    def _folded(
        self, op: Op, types: tuple[TensorType | None, ...], results: tuple[TensorType, ...]
    ) -> tuple[int, ...] | None:
        """The results as constants, where everything is known and they are not much larger than what they are from."""
        if op.evaluate is None or op.effect is not Effect.NONE or op.evaluate_in is not None or op.subgraphs:
            return None
        if not types or any(t is not None and t.value is None for t in types):
            return None
        sizes = [num_elements(t.shape) for t in results]
        given = sum(t.value.size for t in types if t is not None and t.value is not None)
        if any(size is None for size in sizes) or sum(s or 0 for s in sizes) > max(_FOLDED, 2 * given):
            return None
        self.memory.spend(sum((s or 0) * t.dtype.itemsize for s, t in zip(sizes, results, strict=True)), "constants")
        values = [None if t is None else t.value for t in types]
        arrays = evaluate(op, values, CallTypes(types, results))
        return tuple(self.constant(a, t.dtype) for a, t in zip(arrays, results, strict=True))

    def quantized(self, operand: int, quantization: Quantization) -> int:
        """Integers whose type says what real numbers they stand for."""
        type_ = evolve(self.type(operand), quantization=quantization)
        if type_.value is not None:
            return self._operand(Operand(evolve(type_, data=None), "", Constant(type_.value)))
        return self.emit(Cast(type_.dtype), (operand,), (type_,))[0]

    def undo(self, outputs: Sequence[int]) -> None:
        """Take back the last operation, whose results these are."""
        self._operations.pop()
        del self._operands[min(outputs) :]

    def copied(self, operand: int, name: str) -> int:
        """A copy that is never folded away, under a name of its own."""
        copy = self._operand(Operand(self.type(operand).with_data(None), name))
        self._operations.append(Operation(Copy(), (operand,), (copy,), self.place or f"output '{name}'"))
        return copy

    def known_as(self, operand: int, known: Known) -> None:
        """Note what is known of an operand's elements."""
        if known is not None:
            self._known[operand] = known

    def emit(self, op: Op, operands: Sequence[int | None], types: Sequence[TensorType]) -> tuple[int, ...]:
        """An operation whose results' types its subgraphs say."""
        outputs = tuple(self._operand(Operand(t)) for t in types)
        self._operations.append(Operation(op, tuple(operands), outputs, self.place))
        return outputs


def capture(outer: Draft, inner: Draft, operand: int) -> int:
    """An operand of a subgraph within one that it runs: a constant is one there too, another is a further input."""
    if operand not in inner.captured:
        type_, name = outer.type(operand), outer.named(operand)
        if type_.value is not None:
            inner.captured[operand] = inner.constant(type_.value, type_.dtype, name)
        else:
            inner.captured[operand] = inner.input(type_, name)
            inner.known_as(inner.captured[operand], outer.known(operand))
    return inner.captured[operand]
