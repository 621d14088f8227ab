"""An operation that always fails."""

from __future__ import annotations

from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.errors import RuleError
from onert.ir.op import Op
from onert.ir.ops.custom import as_declared
from onert.ir.types import TensorType


@frozen
class Refuse(Op):
    """Ends the run with the error `sentence`; replaces a branch that is impossible for the shapes that it receives.

    - `xs`: anything; results are declared but never produced
    """

    sentence: str
    results: tuple[TensorType, ...] = ()

    infer = as_declared

    def evaluate(self, *xs: Array) -> tuple[Array, ...]:
        raise RuleError(self.sentence)
