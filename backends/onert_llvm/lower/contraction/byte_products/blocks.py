"""Fully connected float layers with filters quantised in blocks: each run of a row's features has its own scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.blockwise.gemm_blocks import GemmBlocks, lift
from onert_llvm.kernels.contraction.blockwise.run_sums import RunSums
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS
from onert_llvm.kernels.contraction.scaled_results import BlockScaled
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import epilogue_task
from onert_llvm.lower.contraction.int8_gemm import byte_product
from onert_llvm.lower.contraction.quantized_rows import Quantized, quantize
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule.cost_model import run_tile
from onert_llvm.schedule.weight_packing import PackLifted, pack_run_scales, shortest
from onert_llvm.target.isa import multiplying

_FILTERS = (DType.INT8, DType.INT4, DType.INT2)
STEP = 16
"""Run lengths must be multiples of this, which is a multiple of the terms per step on every target."""


def why_not(op: FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    x, weight, out = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    if weight.dtype not in _FILTERS or any(t is not None and t.dtype is not DType.FLOAT32 for t in (x, bias, out)):
        return "only float32 with filters of 8 bits or less is native"
    if weight.value is None or weight.quantization is None or weight.quantization.block_size is None:
        return "the filter is not constant, or is not quantised in blocks"
    if weight.quantization.block_size % STEP or weight.quantization.block_size > MOST_TERMS:
        return f"blocks of {weight.quantization.block_size} are not native, only multiples of {STEP}"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return "a tensor has no elements" if 0 in (x.shape + weight.shape + out.shape) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Quantise each row separately, sum its runs, and multiply.

    What the previous layer computed of the same rows is reused.
    """
    at, _, op = lowering.first(operations, FullyConnected)
    x, kernel, bias = lowering.layer(at)
    weight, stored = lowering.type(kernel), lowering.elements(kernel)
    assert weight.quantization is not None
    assert weight.quantization.block_size is not None
    run, bits, (n, depth) = weight.quantization.block_size, weight.dtype.bits, stored.shape
    m, runs = math.prod(lowering.shape(x)) // depth, depth // run
    after = epilogue_task(lowering, operations, op.activation, bias, n)
    isa = multiplying(lowering.isa, bits)
    moved = lift(isa, bits)
    source = quantized_runs(lowering, at, x, (m, runs, run), -moved)
    (sums,) = source.more
    tile = run_tile(m, n, isa)
    product = byte_product(lowering, m, stored.T[None], tile, depth, isa, bits=bits, pack=PackLifted(bits, moved))
    scales = np.asarray(weight.quantization.scales, np.float32).reshape(n, runs)
    stored_scales = shortest(scales)
    slots: dict[str, Slot] = {
        **product.slots,
        **source.slots,
        **after.slots,
        "a": source.values,
        "c": after.place,
        "runs": runs,
        "starts": sums.pointer,
        "scales": lowering.deferred_constant(lambda: pack_run_scales(stored_scales, tile.columns, lowering.isa)),
        "sums": lowering.deferred_constant(partial(_scaled_sums, stored, scales, run, lowering.isa.f32)),
    }
    algorithm = GemmBlocks(tile, run, bits, BlockScaled(after.epilogue), stored_scales is not scales)
    own = {name: slots[name] for name in algorithm.slots}
    touched = (*source.accesses, evolve(sums, write=False), *after.accesses)
    lowering.emit(at, algorithm, own, product.tiles, after.reads, after.writes, 2 * m * depth * n, touched, isa=isa)


def quantized_runs(
    lowering: Lowering, at: int, x: int, sizes: tuple[int, int, int], times: int, *, apart: bool = False
) -> Quantized:
    """Emit the commands that quantise `m` rows of `runs`, each of length `run`, and that sum each run, multiplied by
    `times`. They are emitted once for layers with the same input.

    Rows have scales and offsets; if `apart`, runs have scales instead.
    """
    m, runs, run = sizes
    what = (x, runs, run, times, apart)
    found: Quantized | None = lowering.retained(what)
    if found is not None:
        return found
    source = quantize(lowering, at, x, m * runs if apart else m, 0, not apart, 4 * m * runs, signed=True)
    (sums,) = source.more
    summed: dict[str, Slot] = {"x": source.values, "out": sums.pointer, "run": run, "times": times}
    touched = source.accesses[0], evolve(sums, write=True)
    lowering.emit(at, RunSums(), summed, m * runs, (), (), m * runs * run, touched)
    return lowering.retain(what, source)


def _scaled_sums(weights: Array, scales: Array, run: int, lanes: int) -> Array:
    """The float32 sums of each output's scaled weights, added run by run, padded to whole registers."""
    n = len(weights)
    out = np.zeros(-(-n // lanes) * lanes, np.float32)
    for number in range(scales.shape[1]):
        part = weights[:, number * run : (number + 1) * run].sum(axis=1, dtype=np.int64)
        out[:n] += scales[:, number] * part.astype(np.float32)
    return out
