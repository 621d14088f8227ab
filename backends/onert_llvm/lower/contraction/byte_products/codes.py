"""Fully connected layers whose weights are codes of a few bits, with a scale for each block of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.block_codes import BlockFullyConnected
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.blockwise.gemm_blocks import GemmBlocks, lift
from onert_llvm.kernels.contraction.blockwise.gemm_codes import WORD, GemmCodes
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS
from onert_llvm.kernels.contraction.register_tile import Tile
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import EpilogueTask, epilogue_task
from onert_llvm.lower.contraction.partition import partition
from onert_llvm.schedule.cost_model import Shape, code_tile, decoded_work, run_tile
from onert_llvm.schedule.float_packing import panel_bytes_f32, panels
from onert_llvm.schedule.weight_packing import PackCodes, pack_run_scales, pack_words, panel_bytes_int8, shortest
from onert_llvm.target.isa import multiplying
from onert_llvm.target.machines import scratch_stride

from .blocks import STEP, quantized_runs


def why_not(op: BlockFullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    x, codes, *others = (t for t in types.inputs if t is not None)
    if any(t.value is None for t in (codes, *others)):
        return "only constant weights are native"
    run = (codes.shape[2] or 0) * 8 // op.bits
    if run % STEP or run % (WORD // op.bits) or run > MOST_TERMS:
        return f"blocks of {run} are not native, only multiples of {STEP}"
    if 0 in (*x.shape, *codes.shape, *types.output.shape):
        return "a tensor has no elements"
    scales = others[0].value
    assert scales is not None
    most = float(np.finfo(np.float32).max) / (1 << op.bits)
    return None if (np.abs(scales) < most).all() else "a scale is so large that weights are not finite"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The product with codes, either of floats or of bytes."""
    _, operation, op = lowering.first(operations, BlockFullyConnected)
    after = epilogue_task(lowering, operations, Activation.NONE, None, lowering.shape(operation.inputs[1] or 0)[0])
    (_bytes if op.byte_inputs else _floats)(lowering, operations, after)


def _floats(lowering: Lowering, operations: Sequence[int], after: EpilogueTask) -> None:
    at, operation, op = lowering.first(operations, BlockFullyConnected)
    x, codes, scales, *zeros = operation.used
    (n, runs, size), m = lowering.shape(codes), math.prod(lowering.shape(x)[:-1])
    run = size * 8 // op.bits
    shape = Shape(m, n, runs * run, row_stride=runs * run * 4)
    tile, few, many = code_tile(shape, lowering.isa)
    packed = lowering.packed(lowering.elements(codes), tile.columns, pack_words)
    width = tile.columns.widest * lowering.isa.f32
    work, slots = partition(lowering, shape, tile, runs * run * 4, packed, runs * size * width)
    rooms: tuple[Access, ...] = ()
    if many:
        room = scratch_stride(
            panel_bytes_f32(1, runs * run, tile.columns, lowering.isa), lowering.callers, lowering.isa
        )
        rooms = lowering.scratch(room * lowering.callers)
        work = decoded_work(m, tile, panels(n, tile.columns, lowering.isa), lowering.threads)
        slots |= {"mc": work.mc, "rooms": rooms[0].pointer, "room": room}
    factors = shortest(lowering.elements(scales))
    slots |= {**after.slots, "a": lowering.operand(x), "c": after.place, "runs": runs}
    slots |= _beside(lowering, tile, factors, *(lowering.elements(i) for i in zeros))
    short = factors.dtype == np.float16
    algorithm = GemmCodes(tile, run, op.bits, after.epilogue, bool(zeros), few, short, many)
    reads, flops = (x, *after.reads), 2 * m * n * runs * run
    lowering.emit(at, algorithm, slots, work.tiles, reads, after.writes, flops, (*rooms, *after.accesses))


def _bytes(lowering: Lowering, operations: Sequence[int], after: EpilogueTask) -> None:
    at, operation, op = lowering.first(operations, BlockFullyConnected)
    x, codes, scales, *zeros = operation.used
    (n, runs, size), m = lowering.shape(codes), math.prod(lowering.shape(x)[:-1])
    isa = multiplying(lowering.isa, op.bits)
    run, moved, middle = size * 8 // op.bits, lift(isa, op.bits), 1 << op.bits - 1
    source = quantized_runs(lowering, at, x, (m, runs, run), -1 if zeros else -moved, apart=True)
    (sums,) = source.more
    tile = run_tile(m, n, isa)
    packed = lowering.packed(lowering.elements(codes), tile.columns, PackCodes(op.bits, moved - middle), isa)
    panel_bytes = panel_bytes_int8(1, runs * run, tile.columns, isa, op.bits)
    work, slots = partition(lowering, Shape(m, n, runs * run, True), tile, runs * run, packed, panel_bytes)
    factors = shortest(lowering.elements(scales))
    slots |= {**after.slots, **source.slots, "a": source.values, "c": after.place, "runs": runs, "starts": sums.pointer}
    lifted = (lowering.elements(i).astype(np.int16) + (moved - middle) for i in zeros)
    slots |= _beside(lowering, tile, factors, *lifted)
    short = factors.dtype == np.float16
    algorithm = GemmBlocks(tile, run, op.bits, after.epilogue, short, bool(zeros), apart=True)
    touched = (*source.accesses, evolve(sums, write=False), *after.accesses)
    flops = 2 * m * n * runs * run
    lowering.emit(at, algorithm, slots, work.tiles, after.reads, after.writes, flops, touched, isa=isa)


def _beside(lowering: Lowering, tile: Tile, scales: Array, *zeros: Array) -> dict[str, Slot]:
    """Scales and optional zero points as panels that match those of the weights."""
    found = zip(("scales", "zeros"), (scales, *zeros), strict=False)
    return {
        name: lowering.deferred_constant(partial(pack_run_scales, own, tile.columns, lowering.isa))
        for name, own in found
    }
