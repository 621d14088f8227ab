"""Float32 convolutions of small groups of channels, with one command for all groups."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import Array
from onert_llvm.command.command import Access
from onert_llvm.kernels.contraction.direct.grouped_f32 import GroupedF32, Groups
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.schedule.depthwise import chunk, grouped, strip


def lowered(lowering: Lowering, windows: Windows, filters: Array, ldc: int, accesses: tuple[Access, ...] = ()) -> bool:
    """Emit a convolution with finite constant filters `[n, height, width, inputs of a group]`; returns False if
    multiplying the groups one by one is better.
    """
    geometry = windows.geometry
    n, kh, kw, inputs = filters.shape
    groups = Groups(inputs, n * inputs // geometry.channels)
    isa = grouped((kh, kw), geometry.stride[1], geometry.dilation[1], groups, n, lowering.isa)
    if isa is None:
        return False
    cut = strip((kh, kw), geometry.stride[1], geometry.dilation[1], geometry.out[1], n, isa)
    lanes = groups.results(isa.f32)
    cut = evolve(cut, chunked=True, near=geometry.near, lanes=lanes, masked=n < lanes)
    after = windows.after
    some = chunk((kh, kw), geometry.size, n, isa)
    some = max(1, some // (inputs * lanes)) * lanes
    lines, chunks = geometry.images * geometry.out[0], -(-n // some)
    block = -(-lines // lowering.threads)  # a thread's share, with all channels of its rows
    slots = {
        **geometry.slots,
        **after.slots,
        "w": lowering.constant(np.ascontiguousarray(filters.transpose(1, 2, 3, 0))),
        "c": after.place,
        "channels": n,
        "ldc": ldc,
        "lines": lines,
        "chunk": some,
        "block": block,
        "block_tiles": block * chunks,
        "input": windows.source,
        "zero": lowering.constant(np.zeros(geometry.channels, np.float32)),
    }
    flops = 2 * geometry.rows * geometry.taps * inputs * n
    reads, algorithm = (*windows.reads, *after.reads), GroupedF32(cut, after.epilogue, groups=groups)
    touched = (*accesses, *after.accesses)
    lowering.emit(windows.operation, algorithm, slots, lines * chunks, reads, after.writes, flops, touched, isa=isa)
    return True
