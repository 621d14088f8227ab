"""Regions of images resampled to a fixed size, with a number of samples that depends on each region."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.vision_audio.sampling import RoiAlign
from onert_llvm.command.command import Slot
from onert_llvm.kernels.vision_audio.regions import MOST_SAMPLES, AlignRegions
from onert_llvm.lower.command_builder import Lowering

_BROKEN = f"region {{}} belongs to no image, is not finite, or needs more than {MOST_SAMPLES} samples in a cell"


def why_not(op: RoiAlign, types: CallTypes) -> str | None:
    """Why this backend does not sample the regions; None if it does."""
    if op.samples:
        return "a fixed number of samples is read by a table instead"
    if types.input(0).dtype is not DType.FLOAT32:
        return "only float32 is native"
    return "there are no pixels or regions" if any(0 in t.shape for t in types.inputs if t is not None) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Sample one region after another."""
    at, operation, op = lowering.single(operations, RoiAlign)
    x, regions, batches = operation.used
    pictures, channels, height, width = lowering.shape(x)
    wide = lowering.type(batches).dtype is DType.INT64
    kernel = AlignRegions(op.rows, op.columns, op.scale, op.half_pixel, op.largest, wide)
    slots: dict[str, Slot] = {
        "report": lowering.check(at, _BROKEN),
        "pictures": pictures,
        "channels": channels,
        "height": height,
        "width": width,
    }
    count = lowering.shape(regions)[0]
    reads, writes = {"x": x, "regions": regions, "batches": batches}, {"out": operation.outputs[0]}
    flops = 16 * count * op.rows * op.columns * channels
    lowering.run(at, kernel, count, reads, writes, slots, flops)
