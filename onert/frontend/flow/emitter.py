"""What the rules of the operator tables work with: a flow operation, and the emitter of IR operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, Constant, DType, Op, Operand, Quantization, RuleError, TensorType
from onert.ir import shape as shapes
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from . import attributes


@frozen(eq=False)
class Node:
    """A flow operation: its operands in the subgraph under construction, and the declared types of its results."""

    type: str
    inputs: tuple[int, ...]
    results: tuple[TensorType, ...]
    attributes: Mapping[str, str]

    def input(self, position: int) -> int:
        """A required operand. Raises RuleError if it is missing."""
        if position >= len(self.inputs):
            raise RuleError(f"has {len(self.inputs)} inputs, expected at least {position + 1}")
        return self.inputs[position]

    @property
    def result(self) -> TensorType:
        """The declared type of the first result. Raises RuleError if there is none."""
        if not self.results:
            raise RuleError("has no outputs, expected at least 1")
        return self.results[0]

    def require_inputs(self, least: int, most: int | None = None) -> None:
        """Raise RuleError unless there are `least` to `most` operands (exactly `least` by default)."""
        most = least if most is None else most
        if not least <= len(self.inputs) <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            raise RuleError(f"has {len(self.inputs)} inputs, expected {expected}")

    def without_first(self) -> Node:
        """The same operation without its first operand."""
        return Node(self.type, self.inputs[1:], self.results, self.attributes)

    def integer(self, name: str) -> int | None:
        found: int | None = self._read(name, attributes.integer)
        return found

    def boolean(self, name: str) -> bool:
        return bool(self._read(name, attributes.boolean))

    def integers(self, name: str) -> tuple[int, ...] | None:
        found: tuple[int, ...] | None = self._read(name, attributes.integers) if self.attributes.get(name) else None
        return found

    def _read(self, name: str, reader: Callable[[str], Any]) -> Any:
        text = self.attributes.get(name)
        if text is None:
            return None
        try:
            return reader(text)
        except RuleError as error:
            raise RuleError(f"attribute '{name}': {error}") from error


class Emitter(Builder):
    """Adds IR operations to a subgraph, all with the place of the flow operation.

    Operands are indices. Every method that adds an operation raises ModelError with the place if a rule is broken.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.place = ""

    def location(self, op: Op) -> str:
        return self.place

    def add_many(
        self, op: Op, *operands: int | None, quantization: Sequence[Quantization | None] = ()
    ) -> tuple[int, ...]:
        results = super().add_many(op, *operands, quantization=quantization)
        for index in results:
            if not self._operands[index].type.ranked:
                raise RuleError(f"{op.label} has a result whose rank is known only at run time")
        return results

    # ---- operands

    def operand(self, operand: Operand, given: bool) -> int:
        """Add an operand, which is an input if it is `given` from outside."""
        index = self._operand(operand)
        if given:
            self.inputs.append(index)
        return index

    def name_operand(self, index: int, name: str) -> None:
        """Name an operand after a variable."""
        self._operands[index] = evolve(self._operands[index], name=name)

    def operand_name(self, index: int) -> str:
        return self._operands[index].name

    def dtype(self, index: int) -> DType:
        return self._operands[index].type.dtype

    def rank(self, index: int) -> int:
        return self._operands[index].type.rank

    def shape(self, index: int) -> tuple[int, ...]:
        """An operand's shape. Raises RuleError if a dimension is unknown."""
        return shapes.static(self._operands[index].type.shape)

    def elements(self, index: int, what: str) -> Array:
        """The elements of a constant. Raises RuleError for any other operand."""
        data = self._operands[index].data
        if data is None:
            raise RuleError(f"{what} is '{self._operands[index].name}', expected a constant")
        return data.array

    def integers(self, index: int, what: str) -> tuple[int, ...]:
        """The elements of an integer constant. Raises RuleError for any other operand."""
        if not self.dtype(index).is_integer:
            raise RuleError(f"{what} is of type {self.dtype(index).text}, expected integers")
        return tuple(int(i) for i in self.elements(index, what).reshape(-1))

    def integer(self, index: int, what: str) -> int:
        """The element of an integer constant with one element. Raises RuleError for any other operand."""
        found = self.integers(index, what)
        if len(found) != 1:
            raise RuleError(f"{what} has {len(found)} elements, expected 1")
        return found[0]

    def indices(self, numbers: Sequence[int]) -> int:
        """A constant with int32 elements."""
        return self.constant(np.array(numbers, np.int32))

    def like(self, x: int, value: float) -> int:
        """A constant scalar with the element type of an operand."""
        dtype = self.dtype(x)
        return self.operand(
            Operand(TensorType(dtype, ()), "", Constant(np.asarray(value).astype(dtype.numpy))), given=False
        )

    # ---- operations

    def unary(self, kind: UnaryKind, x: int) -> int:
        return self.add(Unary(kind), x)

    def binary(self, kind: BinaryKind, x: int, y: int) -> int:
        return self.add(Binary(kind), x, y)

    def reciprocal(self, x: int) -> int:
        """`1 / x`."""
        return self.binary(BinaryKind.DIV, self.like(x, 1), x)

    def cast(self, x: int, dtype: DType) -> int:
        return x if self.dtype(x) is dtype else self.add(Cast(dtype), x)

    def truth(self, x: int) -> int:
        """Whether each element is not 0."""
        if self.dtype(x) is DType.BOOL:
            return x
        return self.add(Comparison(ComparisonKind.NOT_EQUAL), x, self.like(x, 0))

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        """The operand reshaped; one dimension may be -1."""
        if self.type(x).shape == tuple(shape):
            return x
        return self.add(Reshape(tuple(shape)), x)


Rule = Callable[[Emitter, Node], Sequence[int] | int]
"""Adds the IR operations for a flow operation, and returns the operands of its results."""
