"""Widen arithmetic on 16-bit floats without native code to float32."""

from __future__ import annotations

from typing import overload

import numpy as np
from attrs import evolve

from onert.compiler.legalize.legalize import Support, Supports
from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.effects import is_function
from onert.ir import CallTypes, Constant, DType, Operand, Operation, RuleError, Subgraph, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.elementwise.convert import Cast

NARROW = (DType.FLOAT16, DType.BFLOAT16)


def widen(graph: Subgraph, supports: Supports) -> Subgraph:
    """The graph with arithmetic on float16 and bfloat16 widened to float32, unless a backend has native code for it.

    Results that only such arithmetic reads stay float32: they are not rounded, and may exceed the narrow type's range.
    Results that are read elsewhere, the graph's outputs, and the results of the model's own casts are rounded.
    Operations that only move elements are widened if all they move is available in float32, or if no backend moves
    narrow floats. Returns the same object if nothing changes.

        a = Softmax(x); y = BatchMatMul(a, v)    -->    a = Softmax(Cast(x)); y = Cast(BatchMatMul(a, Cast(v)))
    """
    if not any(operand.type.dtype in NARROW for operand in graph.operands):
        return graph
    return _Widening(graph, supports).run()


class _Widening:
    """`wide` maps operands to their float32 forms."""

    def __init__(self, graph: Subgraph, supports: Supports) -> None:
        self.graph = graph
        self.supports = supports
        self.edit = Edit(graph)
        self.wide: dict[int, int] = {}
        self.made: dict[int, list[Operation]] = {}
        self.results: set[int] = set()

    def run(self) -> Subgraph:
        needed = set(self.graph.kept)
        for at, operation in enumerate(self.graph.operations):
            if self.is_widened(operation):
                self.widen(at, operation)
            else:
                needed.update(operation.used)
        for at, operations in self.made.items():
            operation = self.graph.operations[at]
            for out in operation.outputs:
                if out in self.wide and out in needed:
                    rounding = Cast(self.graph.type(out).dtype), (self.wide[out],), (out,)
                    operations.append(Operation(*rounding, operation.location))
            self.edit.replace(at, *operations)
        return self.edit.done()

    def is_widened(self, operation: Operation) -> bool:
        """Whether to widen an operation: its result types are otherwise the same, and it is supported no worse."""
        op, types = operation.op, self.graph.types(operation)
        if isinstance(op, Branch | Loop) or op.subgraphs or not is_function(operation):
            return False
        narrow = [i for i in operation.used if self.graph.type(i).dtype in NARROW]
        varying = [i for i in narrow if not self.graph.operands[i].is_constant]
        if not narrow or all(self.graph.operands[i].is_constant for i in operation.used):
            return False
        if any(self.graph.operands[i].variable for i in varying):
            return False
        if any(t is not None and t.quantization is not None for t in (*types.inputs, *types.outputs)):
            return False
        level = self.supports(operation, types)
        moves = op.stored and bool(varying) and all(i in self.results for i in varying)
        if level >= Support.NATIVE and not moves:
            return False
        found = CallTypes(tuple(_operand(t) for t in types.inputs), tuple(_result(t) for t in types.outputs))
        try:
            inferred = infer(op, found.inputs)
        except RuleError:
            return False
        if inferred is None or [t.dtype for t in inferred] != [t.dtype for t in found.outputs]:
            return False
        better = self.supports(operation, found)
        return moves or better > level or (better is level and not op.stored)

    def widen(self, at: int, operation: Operation) -> None:
        """Rewrite the operation to float32."""
        before: list[Operation] = []
        inputs = tuple(None if i is None else self.read(i, operation, before) for i in operation.inputs)
        outputs = []
        for out in operation.outputs:
            type_ = self.graph.type(out)
            if type_.dtype in NARROW:
                self.wide[out] = self.edit.operand(Operand(_result(type_), self.graph.operands[out].name))
                self.results.add(out)
            outputs.append(self.wide.get(out, out))
        self.made[at] = [*before, evolve(operation, inputs=inputs, outputs=tuple(outputs))]

    def read(self, operand: int, operation: Operation, before: list[Operation]) -> int:
        """The float32 form of an operand; the operand itself if it is not narrow."""
        type_ = self.graph.operands[operand].known
        if type_.dtype not in NARROW:
            return operand
        if operand not in self.wide:
            wide = _operand(type_)
            self.wide[operand] = self.edit.operand(Operand(wide.with_data(None), data=wide.data))
            if wide.data is None:
                before.append(Operation(Cast(DType.FLOAT32), (operand,), (self.wide[operand],), operation.location))
        return self.wide[operand]


def _result(type_: TensorType) -> TensorType:
    """The type of a result once it is computed in float32."""
    return evolve(type_, dtype=DType.FLOAT32, data=None) if type_.dtype in NARROW else type_


@overload
def _operand(type_: TensorType) -> TensorType: ...
@overload
def _operand(type_: TensorType | None) -> TensorType | None: ...
def _operand(type_: TensorType | None) -> TensorType | None:
    """The type of an operand in float32; its elements stay known unless they depend on lengths."""
    if type_ is None or type_.dtype not in NARROW:
        return type_
    data = type_.data
    known = None if data is None or data.is_symbolic else Constant(lambda: data.array.astype(np.float32))
    return _result(type_).with_data(known)
