"""A new element type or instruction is one row of a table: all that the contraction needs is stated in one place."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
import pytest
from attrs import evolve, frozen

from onert_llvm.codegen.kernel_abi import KernelSpec, Task, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.irbuilder import I32, Kernel, Val
from onert_llvm.kernels.contraction.contraction import Contraction, Ending, Finish, Operand, Reading, Sums, Terms
from onert_llvm.kernels.contraction.float_microkernel import accumulators
from onert_llvm.kernels.contraction.operands import Matrix, Windows
from onert_llvm.kernels.contraction.register_tile import Block, Tile
from onert_llvm.kernels.contraction.scaled_results import Scaled
from onert_llvm.schedule.cost_model import Shape, product_tile, row_work
from onert_llvm.schedule.float_packing import pack_f32, panel_bytes_f32, panels
from onert_llvm.schedule.weight_packing import pack_int8, panel_bytes_int8
from onert_llvm.target.isa import DotProduct, Isa, runnable, target

from .contractions import gemm_int8
from .harness import guarded, run
from .picture import same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


@frozen
class WordTerms(Terms):
    """32-bit integers times packed 32-bit integers, modulo 2**32: everything a new element type has to define."""

    name = "words"
    element = I32

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        lanes, columns = k.isa.f32, range(block.vectors)
        acc = accumulators(k, [begin(j) for j in columns], block.count)
        taps = () if reading.depth is None else (reading.depth * block.width,)
        panels = k.view(block.panel, I32, *taps, block.width, 1)
        with reading.each() as run:
            panel = panels if run.tap is None else panels[run.tap]
            with k.loop(run.depth) as p:
                for row, sums in zip(run.rows, acc, strict=True):
                    for j in columns:
                        product = row[p].load().splat(lanes) * panel[p, j * lanes].load(lanes)
                        sums[j].set(sums[j].get() + product)
        return [[x.get() for x in row] for row in acc]


@frozen
class Stored(Ending):
    """Sums stored unchanged."""

    element = I32

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return k.zeros(I32, k.isa.f32)

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        return lambda _: lambda _row, sums: sums


class Dot(Enum):
    """An instruction that no target uses yet: the saturating one of VNNI."""

    SATURATING = DotProduct("vpdpbusds", 4, (0, 128), "llvm.x86.avx512.vpdpbusds.{bits}")


@ISAS
@pytest.mark.parametrize("operand", [Matrix(), Windows()], ids=lambda o: o.name)
def test_a_new_element_type_works_in_products_and_convolutions(isa: Isa, operand: Operand) -> None:
    picture, n = same(2, (5, 6), 3, (3, 3) if isinstance(operand, Windows) else (1, 1)), 21
    taps, rng = picture.window[0] * picture.window[1], np.random.default_rng(0)
    x = rng.integers(-(1 << 31), 1 << 31, picture.shape, np.int32)
    w = rng.integers(-(1 << 20), 1 << 20, (taps, 3, n), np.int32)
    tile = evolve(product_tile(picture.rows, n, taps * 3, isa), ahead=0, stream=0)
    across, c = panels(n, tile.columns, isa), guarded(np.zeros((picture.rows, n), np.int32))
    work = row_work(Shape(picture.rows, n, taps * 3), tile, across, taps * 12, isa)
    packed = guarded(pack_f32(w.view(np.float32), tile.columns, isa))
    slots = {"b": packed, "c": c, "m": picture.rows, "n": n, "mc": work.mc, "panels": across, "ldc": n, "k": 3}
    slots["panel_bytes"] = panel_bytes_f32(taps, 3, tile.columns, isa)
    read = {"a": guarded(x), "lda": 3}
    if isinstance(operand, Windows):
        read = picture.slots(guarded(x), guarded(np.zeros(3, np.int32)))
    spec = KernelSpec(Contraction(tile, operand, WordTerms(), Stored()), isa)
    assert spec.name == f"{operand.name}_words"
    run(spec, work.tiles, slots | read)
    seen = picture.windows(x, 0).reshape(picture.rows, taps, 3)
    expected = np.einsum("rtk,tkn->rn", seen.astype(np.int64), w.astype(np.int64))
    np.testing.assert_array_equal(c, (expected & 0xFFFFFFFF).astype(np.uint32).view(np.int32))


def test_a_new_instruction_multiplies_bytes() -> None:
    isa = evolve(target("x86-64-v4-vnni"), dot=Dot.SATURATING)
    m, k, n = 9, 37, 40
    rng = np.random.default_rng(1)
    x, w = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
    tile = product_tile(m, n, k, isa, integer=True)
    spec = KernelSpec(gemm_int8(tile, k % isa.group, True, Scaled(stored="i32")), isa)
    text = str(build(spec))
    assert "vpdpbusds.512" in text
    assert compile_text(text, isa)
    if target("x86-64-v4-vnni") not in runnable():
        return
    across, c = panels(n, tile.columns, isa), guarded(np.zeros((m, n), np.int32))
    work = row_work(Shape(m, n, k, True), tile, across, k, isa)
    start = np.zeros(-(-n // isa.f32) * isa.f32, np.int32)
    start[:n] = -128 * w.sum(0, dtype=np.int32)
    slots = {"a": guarded(x), "b": guarded(pack_int8(w, tile.columns, isa)), "c": c, "start": guarded(start)}
    slots |= {"m": m, "n": n, "mc": work.mc, "panels": across, "ldc": n, "k": k, "lda": k}
    run(spec, work.tiles, slots | {"panel_bytes": panel_bytes_int8(1, k, tile.columns, isa)})
    np.testing.assert_array_equal(c, x.astype(np.int32) @ w.astype(np.int32))
