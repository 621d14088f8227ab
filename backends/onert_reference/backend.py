"""The backend that evaluates operations in NumPy. Its kernels' module is imported on first use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onert.backend import EvaluatingKernel, Kernel, Sequence, Settings, StretchedKernel
from onert.backend.backend import Sequenced
from onert.backend.cache import DISTRIBUTION, installed
from onert.ir import BackendError, CallTypes, Operation
from onert.ir.process import imports

if TYPE_CHECKING:
    from onert.ir.symbolic.trace import Trace


class Reference(Sequenced):
    """Runs every operation that can be evaluated in NumPy, whatever its types; it is the oracle of every test."""

    api_version = 2
    name = "reference"
    evaluates = True
    updates_in_place = True

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        op = operation.op
        if op.evaluate is None and op.evaluate_quantized is None and op.evaluate_in is None:
            return f"{op.label} cannot be evaluated in NumPy"
        return None

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return EvaluatingKernel(sequence)

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        return _stretched(kernel)

    def fingerprint(self, settings: Settings) -> str:
        return installed(Path(__file__).parent, DISTRIBUTION)

    def revive_stretched(self, kept: object, kernel: Kernel) -> StretchedKernel:
        made = _stretched(kernel)
        if made is None:
            raise BackendError("an attribute of an operation depends on a length")
        return made


def _stretched(kernel: Kernel) -> StretchedKernel | None:
    assert isinstance(kernel, EvaluatingKernel)
    made: StretchedKernel | None = imports.module("onert.backend.evaluation.evaluating").stretched(kernel.sequence)
    return made
