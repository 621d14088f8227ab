"""The rules for element types that few operations have."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.unary import Unary

from . import fourier
from .rule import Rule

_PART = Rule(fourier.why_no_part, fourier.lower_part)


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation on complex numbers."""
    if isinstance(op, Unary) and types.input(0).dtype is DType.COMPLEX64:
        yield _PART
