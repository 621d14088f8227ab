"""Equivalent graphs with work for passes: detours that passes are expected to remove."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from onert.ir import Constant, DType, Op, Operand, Operation, Subgraph, TensorType, infer
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze


class _Rough:
    def __init__(self, graph: Subgraph, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.operands = list(graph.operands)
        self.operations: list[Operation] = []

    def add(self, op: Op, *inputs: int) -> int:
        """Add an operation whose result has the quantisation of its first operand."""
        results = infer(op, [self.operands[i].known for i in inputs])
        assert results is not None
        first = self.operands[inputs[0]].type
        inherited = first.quantization if results[0].dtype is first.dtype else None
        self.operands.append(Operand(evolve(results[0], quantization=inherited)))
        result = len(self.operands) - 1
        self.operations.append(Operation(op, inputs, (result,), f"detour {result}"))
        return result

    def integers(self, *values: int) -> int:
        array = np.array(values, np.int32)
        self.operands.append(Operand(TensorType(DType.INT32, array.shape), data=Constant(array)))
        return len(self.operands) - 1

    def there_and_back(self, x: int) -> int:
        """Transpose by a random permutation and back."""
        rank = self.operands[x].type.rank
        order = [int(axis) for axis in self.rng.permutation(rank)]
        moved = self.add(Transpose(), x, self.integers(*order))
        return self.add(Transpose(), moved, self.integers(*(order.index(axis) for axis in range(rank))))

    def flattened(self, x: int) -> int:
        """Flatten and reshape back."""
        shape = [d or 0 for d in self.operands[x].type.shape]
        return self.add(Reshape(), self.add(Reshape(), x, self.integers(-1)), self.integers(*shape))

    def by_its_shape(self, x: int) -> int:
        """Squeeze axis 0 and reshape back, to a shape that is an attribute."""
        return self.add(Reshape(tuple(d or 0 for d in self.operands[x].type.shape)), self.add(Squeeze((0,)), x))

    def measured(self, x: int) -> int:
        """Reshape to the tensor's own shape, computed by `ShapeOf`."""
        shape = self.add(ShapeOf(), x)
        type_ = self.operands[x].type
        self.operands.append(Operand(type_))
        result = len(self.operands) - 1
        self.operations.append(Operation(Reshape(), (x, shape), (result,), f"detour {result}"))
        return result

    def dead(self, x: int) -> int:
        """Return x itself after adding an operation whose result is unused."""
        self.add(ExpandDims(), x, self.integers(0))
        return x


def roughened(graph: Subgraph, seed: int) -> Subgraph:
    """An equivalent graph: some operands are read through detours, and some operations are duplicated."""
    rough = _Rough(graph, seed)
    detours: list[Callable[[int], int]] = [
        rough.there_and_back,
        rough.flattened,
        rough.by_its_shape,
        rough.measured,
        rough.dead,
    ]
    for operation in graph.operations:
        inputs: list[int | None] = list(operation.inputs)
        first = inputs[0]
        if first is not None and not graph.operands[first].is_constant and graph.type(first).rank == 4:
            if graph.type(first).shape[0] == 1 and rough.rng.random() < 0.5:
                inputs[0] = detours[int(rough.rng.integers(len(detours)))](first)
            if rough.rng.random() < 0.3:
                twins = [len(rough.operands) + i for i in range(len(operation.outputs))]
                rough.operands += [evolve(graph.operands[o], name="") for o in operation.outputs]
                rough.operations.append(evolve(operation, inputs=tuple(inputs), outputs=tuple(twins)))
        rough.operations.append(evolve(operation, inputs=tuple(inputs)))
    return evolve(graph, operands=tuple(rough.operands), operations=tuple(rough.operations))
