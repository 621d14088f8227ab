"""A subgraph under construction: operations are added, and constant-folded if all their operands are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.frontend.format import UnknownRankError
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
"""The number of elements up to which a folded constant may be larger than its operands."""
_OPERATION = 10
"""Budget steps charged for an operation."""


class Draft(Making):
    """Operands and operations of one subgraph. `place` is the current node, for messages and locations."""

    def __init__(self, name: str, steps: Budget, memory: Budget) -> None:
        super().__init__(name)
        self.steps = steps
        self.memory = memory
        self.place = ""
        self.captured: dict[int, int] = {}
        """Operands of the enclosing subgraph, and the inputs or constants that represent them here."""
        self._known: dict[int, Known] = {}

    def value(self, operand: int) -> Array | None:
        """The elements of a constant; None for other operands."""
        return self.type(operand).value

    def known_elements(self, operand: int) -> Known:
        """The known elements of a small integer tensor."""
        found = self._known.get(operand)
        return of_constant(self.type(operand)) if found is None else found

    def definer(self, operand: int) -> Operation | None:
        """The operation that produces an operand; None for inputs and constants."""
        return next((each for each in reversed(self._operations) if operand in each.outputs), None)

    @property
    def size(self) -> int:
        """The number of operands so far."""
        return len(self._operands)

    def operand_name(self, operand: int) -> str:
        return self._operands[operand].name

    def name_operand(self, operand: int, name: str) -> None:
        """Name an operand that has no name."""
        if not self._operands[operand].name:
            self.rename(operand, name)

    def rename(self, operand: int, name: str) -> None:
        self._operands[operand] = evolve(self._operands[operand], name=name)

    def declare(self, operand: int, type_: TensorType) -> None:
        """Trust the shape declared in the file for a result whose rank is unknown."""
        self._operands[operand] = evolve(self._operands[operand], type=type_)

    def is_input(self, operand: int) -> bool:
        return operand in self.inputs

    def constant(self, elements: Array | Sequence[Any] | float, dtype: DType | None = None, name: str = "") -> int:
        """A constant; its element type defaults to that of the NumPy array."""
        array = np.asarray(elements, None if dtype is None else dtype.numpy)
        kind = DType.from_numpy(array.dtype) if dtype is None else dtype
        return self._operand(Operand(TensorType(kind, array.shape), name, Constant(array)))

    def add(self, op: Op, *operands: int | None) -> int:
        """Add an operation with one result, and return that."""
        (result,) = self.add_many(op, *operands)
        return result

    def add_many(self, op: Op, *operands: int | None) -> tuple[int, ...]:
        """Add an operation, or its folded constants if they are known. Raises RuleError if it rejects its operands."""
        self.steps.spend(_OPERATION, "reading its nodes")
        given = list(operands)
        while given and given[-1] is None and len(given) > 1:
            given.pop()
        types = tuple(None if i is None else self.type(i) for i in given)
        results = self._infer(op, types)
        folded = self._fold(op, types, results)
        if folded is not None:
            return folded
        known = None
        if len(results) == 1:
            known = derive(op, types, [None if i is None else self.known_elements(i) for i in given])
            if known is not None and None not in known.flat:
                return (self.constant(known.astype(results[0].dtype.numpy), results[0].dtype),)
        outputs = tuple(self._operand(Operand(t)) for t in results)
        if known is not None:
            self._known[outputs[0]] = known
        self._operations.append(Operation(op, tuple(given), outputs, self.place))
        return outputs

    def _infer(self, op: Op, types: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        try:
            results = infer(op, types)
        except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
            raise RuleError(f"{op.label}: {type(error).__name__}: {error}") from error
        if results is None:
            raise UnknownRankError(f"{op.label} has an input of unknown rank")
        for result in results:
            shapes_ok(result)
        return results

    def _fold(
        self, op: Op, types: tuple[TensorType | None, ...], results: tuple[TensorType, ...]
    ) -> tuple[int, ...] | None:
        """The results as constants if all operands are constant and the results are not much larger; None otherwise."""
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

    def with_quantization(self, operand: int, quantization: Quantization) -> int:
        """The integers with the given quantisation in their type."""
        type_ = evolve(self.type(operand), quantization=quantization)
        if type_.value is not None:
            return self._operand(Operand(evolve(type_, data=None), "", Constant(type_.value)))
        return self.emit(Cast(type_.dtype), (operand,), (type_,))[0]

    def remove_last(self, outputs: Sequence[int]) -> None:
        """Remove the last operation; `outputs` are its results."""
        self._operations.pop()
        del self._operands[min(outputs) :]

    def add_copy(self, operand: int, name: str) -> int:
        """A named copy, which is never folded."""
        copy = self._operand(Operand(self.type(operand).with_data(None), name))
        self._operations.append(Operation(Copy(), (operand,), (copy,), self.place or f"output '{name}'"))
        return copy

    def set_known_elements(self, operand: int, known: Known) -> None:
        """Record the known elements of an operand."""
        if known is not None:
            self._known[operand] = known

    def emit(self, op: Op, operands: Sequence[int | None], types: Sequence[TensorType]) -> tuple[int, ...]:
        """Add an operation whose result types are determined by its subgraphs."""
        outputs = tuple(self._operand(Operand(t)) for t in types)
        self._operations.append(Operation(op, tuple(operands), outputs, self.place))
        return outputs


def capture(outer: Draft, inner: Draft, operand: int) -> int:
    """An operand of `outer` inside a subgraph that it runs: as a constant if it is one, otherwise as an added input."""
    if operand not in inner.captured:
        type_, name = outer.type(operand), outer.operand_name(operand)
        if type_.value is not None:
            inner.captured[operand] = inner.constant(type_.value, type_.dtype, name)
        else:
            inner.captured[operand] = inner.input(type_, name)
            inner.set_known_elements(inner.captured[operand], outer.known_elements(operand))
    return inner.captured[operand]
