"""An operation that runs a part of the graph that is compiled during the run."""

from __future__ import annotations

from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import Context, Op
from onert.ir.ops.custom import as_declared
from onert.ir.types import CallTypes, TensorType


@frozen
class Rest(Op):
    """Runs a part of the graph that is compiled once a run knows the shapes of its inputs; the compiler makes it.

    - `xs`: the inputs of that part; the results are its outputs

    `part` is its number among the model's subgraphs, which do not contain it.
    """

    part: int
    results: tuple[TensorType, ...] = ()

    infer = as_declared

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> tuple[Array, ...]:
        return context.call(self.part, xs)
