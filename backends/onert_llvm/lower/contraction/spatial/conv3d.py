"""Convolutions over three axes and their transposes, in float32 with constant weights.

A transposed convolution is one convolution of all its phases, as over two axes (`phases`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Window
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.value import Value
from onert_llvm.command.command import Pointer, Slot
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.direct.volumes import AXES, Volumes
from onert_llvm.kernels.contraction.epilogue import ACC, Epilogue
from onert_llvm.kernels.contraction.float_terms import ABSENT, FloatTerms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import Tail, tail
from onert_llvm.lower.contraction.float_conv_fc import all_finite, present, product
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.lower.strided_copy import move, operand, side

from .transpose_conv_phases import Axis, span

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
    counts, taps, pads = (_triple([getattr(a, name) for a in axes]) for name in ("count", "taps", "padding"))
    space = _Space(sizes[0], _triple(sizes[1:4]), counts, taps, (1, 1, 1), (1, 1, 1), pads)
    after = _tail(lowering, op.activation, bias, space, axes, operation.outputs[0])
    holes = not all(axis.even for axis in axes)
    _convolve(lowering, at, space, _phases(axes, present(filters)), after, x, holes)
    if after.accesses:
        _put(lowering, at, space, axes, after.place)


def _phases(axes: Sequence[Axis], filters: Array) -> Array:
    """Filters `[depth, height, width, n, channels]` as `[taps, taps, taps, channels, phases and n]`."""
    for i, axis in reversed(list(enumerate(axes))):
        filters = axis.phases(filters, i, float(ABSENT))
    ordered = filters.transpose(0, 2, 4, 7, 1, 3, 5, 6)  # from [taps, phases, taps, phases, taps, phases, n, channels]
    return np.ascontiguousarray(ordered.reshape(*ordered.shape[:4], -1))


def _tail(
    lowering: Lowering, activation: Activation, bias: int | None, space: _Space, axes: Sequence[Axis], result: int
) -> Tail:
    """Bias and activation; the results go to scratch memory where they are not yet in their places."""
    tree = activated(ACC, activation)
    assert tree is not None
    phases = int(np.prod([axis.stride for axis in axes]))
    slots: dict[str, Slot] = {}
    if bias is not None:
        slots["bias"] = lowering.constant(np.tile(lowering.elements(bias).reshape(-1), phases))
    epilogue = Epilogue(tree, bias is not None)
    if phases == 1:
        return Tail(epilogue, slots, (), lowering.operand(result), (result,))
    (room,) = lowering.scratch(space.rows * phases * lowering.shape(result)[-1] * 4)
    return Tail(epilogue, slots, (), room.pointer, (), (room,))


def _put(lowering: Lowering, at: int, space: _Space, axes: Sequence[Axis], made: Pointer) -> None:
    """Phase by phase from scratch memory into the result."""
    result = operand(lowering, lowering.operation(at).outputs[0])
    strides = [axis.stride for axis in axes]
    shape = (space.images, *space.out, *strides, result.view.shape[-1])
    source = side(made, shape, 4)
    for numbers in np.ndindex(*strides):
        spans = [span(axis, number) for axis, number in zip(axes, numbers, strict=True)]
        taken = source.view[(slice(None), *(near for near, _ in spans), *numbers)]
        move(lowering, at, source.at(taken), result.at(result.view[(slice(None), *(far for _, far in spans))]))
