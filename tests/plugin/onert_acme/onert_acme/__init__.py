"""An example of a backend in its own package: float additions and maxima."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.backend import Backend, Kernel, Part, Sequence, Settings, Tensors
from onert.ir import CallTypes, Context, DType, Operation
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

FUNCTIONS = {BinaryKind.ADD: np.add, BinaryKind.MAXIMUM: np.maximum}


class Acme(Backend):
    """Runs float32 additions and maxima."""

    api_version = 2
    name = "acme"

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        op = operation.op
        if not isinstance(op, Binary) or op.kind not in FUNCTIONS or op.activation is not Activation.NONE:
            return f"{op.label} is neither a plain addition nor a maximum"
        everything = (*types.inputs, *types.outputs)
        plain = all(t is not None and t.dtype is DType.FLOAT32 and t.is_static for t in everything)
        return None if plain else "only float32 of known shapes is run"

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return AcmeKernel(sequence)


class AcmeKernel:
    """The kernel of a sequence. All executions share it, so it stores nothing per execution."""

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        return AcmeRun(tuple(self._part(at, tensors) for at in self._sequence.operations))

    def _part(self, at: int, tensors: Tensors) -> Part:
        operation = self._sequence.subgraph.operations[at]
        x, y = (tensors[i].array for i in operation.used)
        out = tensors[operation.outputs[0]].array
        function = FUNCTIONS[operation.op.kind]
        return Part((at,), lambda: function(x, y, out=out))


class AcmeRun:
    """The sequence bound to one execution's tensors; with `parts`, profiles can show each operation."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts

    def __call__(self) -> None:
        for part in self.parts:
            part.call()
