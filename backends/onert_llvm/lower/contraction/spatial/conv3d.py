"""Convolutions over three axes and their transposes, in float32 with constant weights.

A transposed convolution is one convolution of all its phases, as over two axes (`phases`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.window import Window
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.value import Value
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.direct.volumes import AXES, Volumes
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.float_terms import ABSENT, FloatTerms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import Tail, tail
from onert_llvm.lower.contraction.float_conv_fc import all_finite, present, product
from onert_llvm.lower.elementwise.op_to_expression import activated

from .phases import Axis, Phases, after_sums, put, rooms

Triple = tuple[int, int, int]


def why_not(op: Conv3D | TransposeConv3D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    weight = types.input(1)
    bias_at = 3 if isinstance(op, TransposeConv3D) else 2
    bias = types.inputs[bias_at] if len(types.inputs) > bias_at else None
    present = [t for t in (types.input(2 if isinstance(op, TransposeConv3D) else 0), weight, bias, types.output) if t]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None or (bias is not None and bias.value is None):
        return "the weights or the bias are not constant"
    if any(0 in t.shape for t in present):
        return "a tensor has no elements"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    dilated = any(dilation > 1 for _, dilation in op.steps)
    return "a dilated one has no native form" if dilated and isinstance(op, TransposeConv3D) else None


@frozen
class _Space(Value):
    """The geometry of windows over `images`, along depth, height and width."""

    images: int
    size: Triple
    out: Triple
    window: Triple
    stride: Triple
    dilation: Triple
    pads: Triple

    @property
    def rows(self) -> int:
        return self.images * self.out[0] * self.out[1] * self.out[2]

    @property
    def slots(self) -> dict[str, Slot]:
        named = {
            "in": self.size,
            "out": self.out,
            "kernel": self.window,
            "stride": self.stride,
            "dilation": self.dilation,
            "pad": self.pads,
        }
        return {f"{name}_{axis}": triple[i] for name, triple in named.items() for i, axis in enumerate(AXES)}


def _triple(values: Sequence[int]) -> Triple:
    first, second, third = values
    return int(first), int(second), int(third)


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution and its epilogue."""
    _, operation, op = lowering.first(operations, Conv3D)
    x, weight, bias = lowering.layer(operations[0])
    filters = lowering.elements(weight)
    sizes, out = lowering.shape(x), lowering.shape(operation.outputs[0])
    each = enumerate(zip(filters.shape[:3], op.steps, strict=True))
    windows = [Window(n, *step, op.padding.along(i)) for i, (n, step) in each]
    space = _Space(
        sizes[0],
        _triple(sizes[1:4]),
        _triple(out[1:4]),
        _triple(filters.shape[:3]),
        _triple([stride for stride, _ in op.steps]),
        _triple([dilation for _, dilation in op.steps]),
        _triple([w.before(n) for w, n in zip(windows, sizes[1:4], strict=True)]),
    )
    after = tail(lowering, operations, op.activation, bias, filters.shape[4])
    _convolve(lowering, operations[0], space, filters, after, x)


def _convolve(
    lowering: Lowering, at: int, space: _Space, filters: Array, after: Tail, x: int, holes: bool = False
) -> None:
    """The windows of `x` times filters `[depth, height, width, channels, n]`, with `holes` where these are `ABSENT`."""
    *taps, channels, n = filters.shape
    exact = holes or not all_finite(filters)
    filters = filters if holes else present(filters) if exact else filters
    found = product(lowering, space.rows, np.ascontiguousarray(filters.reshape(-1, channels, n)))
    slots: dict[str, Slot] = {**after.slots, **found.slots, **space.slots, "c": after.place, "k": channels}
    slots |= {"input": lowering.operand(x), "zero": lowering.constant(np.zeros(channels, np.float32))}
    algorithm = Contraction(found.tile, Volumes(), FloatTerms(exact=exact), after.epilogue)
    flops = 2 * space.rows * int(np.prod(taps)) * channels * n
    reads = (x, *after.reads)
    lowering.emit(at, algorithm, slots, found.work.tiles, reads, after.writes, flops, accesses=after.accesses)


def lower_transposed(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution: that of all phases, then each phase into its places."""
    at, operation, op = lowering.single(operations, TransposeConv3D)
    _, weight, x, bias = (*operation.inputs, None)[:4]
    assert x is not None
    assert weight is not None
    sizes, out, filters = lowering.shape(x), lowering.shape(operation.outputs[0]), lowering.elements(weight)
    axes = []
    for i, (stride, _) in enumerate(op.steps):
        before = Window(filters.shape[i], stride, 1, op.padding.along(i)).before(out[1 + i])
        axes.append(Axis(sizes[1 + i], filters.shape[i], stride, before, out[1 + i]))
    found = Phases(tuple(axes), sizes[0], out[-1])
    inputs, counts, taps, pads = (_triple(found.each(name)) for name in ("inputs", "count", "taps", "padding"))
    space = _Space(sizes[0], inputs, counts, taps, (1, 1, 1), (1, 1, 1), pads)
    room = lowering.scratch(*rooms(found))
    after = after_sums(lowering, found, op.activation, bias, operation.outputs[0], room)
    ordered = found.filters(np.moveaxis(present(filters), 3, 0), float(ABSENT))
    _convolve(lowering, at, space, np.moveaxis(ordered, 0, -1), after, x, not found.even)
    put(lowering, at, found, room)
