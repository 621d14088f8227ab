"""The kernel of sequences that are evaluated. What it runs is imported only when it is bound."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.backend.kernel import Sequence
from onert.backend.tensor import Tensors
from onert.ir import Context
from onert.ir.process import imports
from onert.ir.value import ByIdentity


@frozen(eq=False)
class EvaluatingKernel(ByIdentity):
    """A sequence whose operations are evaluated one after the other."""

    sequence: Sequence

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        evaluating = imports.module("onert.backend.evaluation.evaluating")
        call: Callable[[], None] = evaluating.evaluating(self.sequence, tensors, context)
        return call
