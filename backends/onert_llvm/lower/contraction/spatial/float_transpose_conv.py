"""Transposed convolutions in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.float_terms import ABSENT
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.direct import planes
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.lower.contraction.float_conv_fc import all_finite, along_lines, convolve_constant, present
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule.planes import TURNED, plane_cycles
from onert_llvm.target.isa import Isa

from .phases import Phases, Transposed, after_sums, phases, put, rooms

_MOST_CHANNELS = 64
"""With more channels, rearranging the results is cheap, and addressing rows of the image needs much code."""
_GAIN = 0.9
"""The largest relative time at which separate phases pay, because each of them reads the image again."""


def why_not(op: Transposed, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    positions = (1, 2, 3) if isinstance(op, TransposeConv2D) else (1, 0, 2)
    weight, x = types.input(positions[0]), types.input(positions[1])
    bias = types.inputs[positions[2]] if len(types.inputs) > positions[2] else None
    present = [t for t in (x, weight, bias, types.output) if t is not None]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None or (bias is not None and bias.value is None):
        return "the weights or the bias are not constant"
    if isinstance(op, TransposeConv2D) and activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return "a tensor has no elements" if any(0 in t.shape for t in present) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Transposed)
    result = operation.outputs[0]
    if isinstance(op, TransposeConv2D):
        _, weight, x, bias = (*operation.inputs, None)[:4]
    else:
        x, weight, bias = operation.inputs[:3]
    assert x is not None
    assert weight is not None
    filters = lowering.elements(weight)
    found = phases(op, lowering.shape(x), filters.shape, lowering.shape(result))
    direct = _direct(found, filters.shape[3], lowering.isa.f32)
    room = () if direct else lowering.scratch(*rooms(found))
    activation = op.activation if isinstance(op, TransposeConv2D) else Activation.NONE
    after = after_sums(lowering, found, activation, bias, result, room)
    geometry, source = found.plane(filters.shape[3]), lowering.operand(x)
    line = found.axes[1].outputs * found.channels
    if direct:
        (down, across), n = found.each("stride"), found.channels
        for number, row in enumerate(np.split(found.filters(filters), down)):
            own = evolve(after, place=evolve(after.place, offset=after.place.offset + number * line * 4))
            along_lines(
                lowering, Windows(at, geometry, source, (x,), own), row, across * n, pitch=down * geometry.out[1]
            )
        return
    flat = all_finite(filters) and _flat(found, filters.shape[3], lowering.isa)
    if flat:
        _phase_by_phase(lowering, found, filters, Windows(at, geometry, source, (x,), after))
    elif _apart(found, lowering.isa.f32):
        columns = found.count * found.channels
        for number, (alone, taps) in enumerate(found.alone(geometry, filters)):
            own = after.from_column(number * found.channels)
            convolve_constant(lowering, at, alone, taps, own, columns, source, (x,))
    else:
        ordered = found.filters(present(filters), float(ABSENT))
        convolve_constant(lowering, at, geometry, ordered, after, len(ordered), source, (x,), not found.even)
    put(lowering, at, found, room, phases_first=flat)


def _phase_by_phase(lowering: Lowering, found: Phases, filters: Array, windows: Windows) -> None:
    """The phases one after the other, all from the same planes of the picture."""
    (_, width), (_, first), after = found.each("taps"), found.each("first"), windows.after
    columns = planes.Columns(found.axes[1].count + width - 1, width - 1 - first)
    nbytes = found.results // found.count * 4
    for number, (alone, taps) in enumerate(found.alone(windows.geometry, filters)):
        own = evolve(after, place=evolve(after.place, offset=after.place.offset + number * nbytes))
        phase = evolve(windows, geometry=alone, after=own)
        known = planes.lowered(lowering, phase, taps, found.channels, columns)
        columns = evolve(columns, known=known)
        if not known:  # this may overwrite the planes
            convolve_constant(
                lowering, windows.operation, alone, taps, own, found.channels, windows.source, windows.reads
            )


def _direct(found: Phases, channels: int, lanes: int) -> bool:
    """Whether each vertical phase stores its rows of the result directly. Windows must be no larger than the strides,
    so that horizontal phases are adjacent columns, and these must fill registers as well as those of all phases do.
    """
    (down, across), n = found.each("stride"), found.channels
    even = found.even and all(a.taps == 1 and a.shift == 0 and a.count * a.stride == a.outputs for a in found.axes)
    fills = down * -(-across * n // lanes) == -(-found.count * n // lanes)
    return even and found.count > 1 and fills and channels <= _MOST_CHANNELS


def _apart(found: Phases, lanes: int) -> bool:
    """Whether phases with uneven taps are better computed separately, because that needs fewer columns times taps."""
    if not _is_uneven(found):
        return False
    together = math.prod(found.each("taps")) * -(-found.count * found.channels // lanes)
    alone = math.prod(found.each("size")) * -(-found.channels // lanes)
    return alone < _GAIN * together


def _is_uneven(found: Phases) -> bool:
    """Whether phases have different numbers of taps, and windows begin inside of the image."""
    return not found.even and all(axis.size // axis.stride > axis.first for axis in found.axes)


def _flat(found: Phases, channels: int, isa: Isa) -> bool:
    """The same because neighbouring results of few channels are then computed in one register, as
    `schedule/planes.py` does for convolutions."""
    width = found.axes[1].count
    if is_symbolic(width) or not _is_uneven(found):
        return False
    together = math.prod(found.each("taps")) * -(-found.count * found.channels // isa.f32) * channels / 2
    each = product(*([len(range(r, axis.size, axis.stride)) for r in range(axis.stride)] for axis in found.axes))
    alone = sum(plane_cycles(found.channels, math.prod(taps) * channels, width, isa) for taps in each)
    return alone + TURNED * channels < _GAIN * together
