"""A backend that needs channels-first images."""

from __future__ import annotations

import numpy as np

from onert.backend import CHANNELS_FIRST, Backend, Memory, Sequence, Settings
from onert.ir import Array, CallTypes, Op, Operation
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.reduction.pool import Pool2D, Pooling

from .stored import StoredKernel


class ChannelsFirst(Backend):
    """Max-pools images and does binary arithmetic on them, as floats [batch, channels, height, width]."""

    api_version = 2

    def __init__(self, name: str = "channels_first") -> None:
        self.name = name  # type: ignore[misc] # the contract's class variable is an instance attribute here

    @property
    def memory(self) -> Memory:
        return CHANNELS_FIRST

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        op = operation.op
        if any(t is None or t.rank != 4 or not t.dtype.is_float or not t.is_static for t in types.inputs):
            return "only pictures of floats are run"
        if isinstance(op, Pool2D):
            plain = op.kind is Pooling.MAX and op.padding is Padding.VALID and op.activation is Activation.NONE
            return None if plain else "only plain maxima are pooled"
        if isinstance(op, Binary):
            same = types.inputs[0] == types.inputs[1] and op.activation is Activation.NONE
            return None if same else "only pictures of one shape are joined"
        return f"there is no {op.label}"

    def generate(self, sequence: Sequence, settings: Settings) -> StoredKernel:
        return StoredKernel(sequence, _run)


def _run(op: Op, given: list[Array], out: Array) -> None:
    assert out.flags.c_contiguous
    if isinstance(op, Pool2D):
        windows = np.lib.stride_tricks.sliding_window_view(given[0], (op.filter_height, op.filter_width), (2, 3))
        out[...] = windows[:, :, :: op.stride_height, :: op.stride_width].max((4, 5))
    else:
        assert isinstance(op, Binary)
        out[...] = op.kind.value.numpy(*given)
