"""Float convolutions by Winograd's minimal filtering, if that is estimated to be faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array
from onert.ir.symbolic.trace import hint, minimum
from onert_llvm.command.command import Slot, short_pieces
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.winograd.form import SQUARE, Form, line_form
from onert_llvm.kernels.contraction.winograd.winograd_f32 import WinogradF32, room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.schedule.bfloat_packing import PackBfloatWinograd
from onert_llvm.schedule.float_packing import PackWinograd, panel_bytes_f32, panels
from onert_llvm.schedule.winograd import MOST_PIECES, Layer, blocks, fastest, possible, tiles
from onert_llvm.target.machines import scratch_stride

FORMS = {"exact": (Form(2),), "fast": (Form(2), Form(4)), "bf16": (Form(2),), "fp16": (Form(2),)}
"""The forms that a precision allows. Results of F(2x2, 3x3) are more accurate than direct sums; the errors of F(4x4,
3x3) are up to twice as large as theirs: 4e-6 of the range. Filtering along one axis is as accurate as they are.
"""

BY_TWOS = Form(2, stride=2)
"""The form for windows of stride 2, which is more accurate than direct sums, too."""

_MOST = 3 / 4
"""The largest fraction of a window's products that a one-axis form may need: at 4/5, transforms cost what is saved."""


def lowered(lowering: Lowering, windows: Windows, filters: Array, ldc: int, kind: Terms) -> bool:
    """Emit a convolution with constant filters `[n, *window, channels]`; returns False if another way is better.

    `kind` is the type of the terms.
    """
    n, *_, channels = filters.shape
    geometry, paired = windows.geometry, kind is Terms.PAIRED and channels % 2 == 0
    forms = _forms(lowering, geometry, paired)
    others = possible(forms, channels, n, lowering.isa, paired)
    if not others:
        return False
    sizes = (geometry.images, geometry.out)
    estimated = fastest(forms, channels, n, lowering.isa, *sizes, paired, geometry.dilation, geometry.term_fractions)
    form = None if estimated is None else estimated.form
    form = lowering.choose(("winograd", geometry, channels, n, kind), form, lambda: (None, *others))
    if form is None or not recoverable(filters, form, paired):
        return False
    layer = Layer(form, channels, n, lowering.isa, paired)
    total, down, across = tiles(form, geometry.images, geometry.out, geometry.dilation)
    after = windows.after.parameterized(geometry.taps * channels)
    code = (WinogradF32, form, after.epilogue, paired)
    cut = blocks(layer, total, lowering.threads, lowering.tiles(code))
    lowering.record_tile(code, cut.tile)
    count = panels(n, cut.tile.columns, lowering.isa)
    shares = cut.slots(total, count)
    work = shares["blocks"] * shares["groups"]
    flops = 2 * geometry.rows * geometry.taps * channels * n
    own = room(form, cut.tile, cut.block, layer.steps, lowering.isa.f32)
    size = scratch_stride(own, lowering.callers, lowering.isa)
    parts = minimum(work, short_pieces(lowering.threads, hint(flops), MOST_PIECES))
    rooms = windows.scratch(lowering, size * lowering.callers)
    algorithm = WinogradF32(form, cut.tile, after.epilogue, Terms.PAIRED if paired else Terms.FLOAT)
    slots: dict[str, Slot] = {
        **geometry.slots,
        **after.slots,
        "b": lowering.packed(filters, cut.tile.columns, PackBfloatWinograd(form) if paired else PackWinograd(form)),
        "c": after.place,
        "n": n,
        "k": channels,
        "ldc": ldc,
        "panels": count,
        "panel_bytes": panel_bytes_f32(math.prod(form.weight_tile), layer.steps, cut.tile.columns, lowering.isa),
        "input": windows.source,
        "zero": lowering.constant(np.zeros(channels, np.float32)),
        "down": down,
        "across": across,
        "total": total,
        **shares,
        "rooms": rooms.pointer,
        "room": size,
    }
    slots = {name: slots[name] for name in algorithm.slots}
    reads, touched = (*windows.reads, *after.reads), (rooms, *after.accesses)
    lowering.emit(windows.operation, algorithm, slots, work, reads, after.writes, flops, touched, parts)
    return True


def _forms(lowering: Lowering, geometry: Plane, paired: bool) -> Sequence[Form]:
    """The candidate forms for a window. One-axis forms have up to two and a half times the weights, and need memory
    beside the tensors.
    """
    dilated, strided = geometry.dilation != (1, 1), geometry.stride != (1, 1)
    if dilated and strided:
        return ()
    if geometry.window == SQUARE and geometry.stride in ((1, 1), (2, 2)):
        return (
            (BY_TWOS,)
            if strided
            else tuple(evolve(form, dilated=dilated) for form in FORMS[lowering.settings.precision])
        )
    if lowering.compact:
        return ()
    form = line_form(geometry.window, geometry.stride, dilated)
    saves = form.points * math.prod(form.parts) <= _MOST * form.outputs * geometry.taps
    return (form,) if saves and not paired else ()


def recoverable(filters: Array, form: Form, rounded: bool) -> bool:
    """Whether the transform of filters `[n, *window, channels]`, which may be rounded, is finite and preserves their
    zeros.

    For an input that is not finite, the kernel recovers the filters from their transform. A zero among other weights
    would then be a small number, whose product with an infinity is not NaN.
    """
    flat = filters.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if not math.isfinite(np.dot(flat, flat)):
            return False
    if form == BY_TWOS or (form.keeps_zeros and not rounded) or np.count_nonzero(flat) == flat.size:
        return True
    zeros = filters.reshape(len(filters), math.prod(form.window), -1) == 0
    return bool(np.array_equal(zeros.any(1), zeros.all(1)))
