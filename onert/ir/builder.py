"""Builds subgraphs from Python code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir.analysis.inference import infer

from .dtype import Array, DType
from .errors import ModelError, RuleError
from .op import Op
from .operand import Operand
from .operation import Operation
from .quant import Quantization
from .subgraph import StateUpdate, Subgraph, Subgraphs
from .types import Constant, TensorType, unranked


class Making:
    """The operands and operations of a subgraph under construction; an operand is identified by its index."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.inputs: list[int] = []
        self._operands: list[Operand] = []
        self._operations: list[Operation] = []
        self._state: list[StateUpdate] = []

    def _operand(self, operand: Operand) -> int:
        self._operands.append(operand)
        return len(self._operands) - 1

    def input(self, type_: TensorType, name: str = "") -> int:
        """Add an input of the subgraph; returns its operand index."""
        self.inputs.append(self._operand(Operand(type_, name)))
        return self.inputs[-1]

    def type(self, operand: int) -> TensorType:
        """The type of an operand, with its elements if it is a constant."""
        return self._operands[operand].known

    def subgraph(self, outputs: Sequence[int]) -> Subgraph:
        """The subgraph with these outputs."""
        return Subgraph(
            tuple(self._operands),
            tuple(self._operations),
            tuple(self.inputs),
            tuple(outputs),
            self.name,
            tuple(self._state),
        )


class Builder(Making):
    """Builds one subgraph, operation by operation.

    b = Builder("main")
    x = b.input(TensorType(DType.FLOAT32, (1, 4)), "x")
    y = b.add(Unary(UnaryKind.RELU), x)
    model = b.model([y])
    """

    def constant(
        self,
        array: Array | Sequence[Any] | float,
        quantization: Quantization | None = None,
        name: str = "",
        dtype: DType | None = None,
    ) -> int:
        """Add a constant. A sequence or number becomes an array of NumPy's default dtype unless `dtype` is given."""
        elements = np.asarray(array, None if dtype is None else dtype.numpy)
        kind = DType.from_numpy(elements.dtype) if dtype is None else dtype
        return self._operand(Operand(TensorType(kind, elements.shape, quantization), name, Constant(elements)))

    def variable(self, type_: TensorType, name: str = "") -> int:
        """Add a tensor whose elements persist from run to run; initially zeros."""
        return self._operand(Operand(type_, name, variable=True))

    def update(self, variable: int, source: int) -> None:
        """Assign the elements of `source` to the variable after each run."""
        self._state.append(StateUpdate(variable, source))

    def add(self, op: Op, *operands: int | None, quantization: Sequence[Quantization | None] = ()) -> int:
        """Add an operation with one result and return that result. Raises ModelError if a rule is broken."""
        (result,) = self.add_many(op, *operands, quantization=quantization)
        return result

    def add_many(
        self, op: Op, *operands: int | None, quantization: Sequence[Quantization | None] = ()
    ) -> tuple[int, ...]:
        """Add an operation. Its results have the inferred types and, where given, these quantisations."""
        try:
            types = infer(op, [None if i is None else self._operands[i].known for i in operands])
        except RuleError as error:
            raise ModelError(f"{self.location(op)}: {error}") from error
        if types is None:
            types = (unranked(DType.FLOAT32),)
        results = tuple(
            self._operand(Operand(evolve(t, quantization=quantization[i] if i < len(quantization) else None)))
            for i, t in enumerate(types)
        )
        self._operations.append(Operation(op, operands, results, self.location(op)))
        return results

    def location(self, op: Op) -> str:
        """The name that error messages use for the operation added next."""
        return f"operation {len(self._operations)} {op.label}"

    def model(self, outputs: Sequence[int]) -> Subgraphs:
        """A model that consists of this one subgraph."""
        return Subgraphs((self.subgraph(outputs),))
