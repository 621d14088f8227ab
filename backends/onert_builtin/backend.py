"""The builtin backend. Its kernels are imported on first use, because few programs need them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onert.backend import Kernel, Sequence, Settings, StretchedKernel
from onert.backend.backend import Sequenced
from onert.backend.cache import DISTRIBUTION, installed
from onert.ir import CallTypes, Operation
from onert.ir.process import imports

if TYPE_CHECKING:
    from onert.ir.symbolic.trace import Trace


class Builtin(Sequenced):
    """Runs `Permute`, which copies a tensor from one memory space to another, and operations that run subgraphs, or
    parts of the entry."""

    api_version = 2
    name = "builtin"
    single = True

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        reason: str | None = _kernels().why_not(operation)
        return reason

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        kernel: Kernel = _kernels().kernel(sequence)
        return kernel

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        made: StretchedKernel | None = _kernels().stretched_kernel(kernel)
        return made

    def fingerprint(self, settings: Settings) -> str:
        return installed(Path(__file__).parent, DISTRIBUTION)

    def revive_stretched(self, kept: object, kernel: Kernel) -> StretchedKernel:
        made: StretchedKernel = _kernels().stretched_kernel(kernel)
        return made


def _kernels() -> Any:
    return imports.module("onert_builtin.kernels")
