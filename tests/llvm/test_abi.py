"""Kernels are pure functions of their specs, and every kernel compiles for every target."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onert.ir import BackendError
from onert_llvm.codegen.kernel_abi import Algorithm, KernelSpec, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import I8
from onert_llvm.kernels.arithmetic.expression import Apply, Fn, Kind, Leaf, clamp, hard_swish
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.batched.dot_terms import DotTerms
from onert_llvm.kernels.contraction.direct.conv_row_f32 import LineConvF32, Lines
from onert_llvm.kernels.contraction.direct.depthwise_f32 import DepthwiseF32
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.direct.plane_conv_f32 import PlaneConvF32
from onert_llvm.kernels.contraction.direct.sliding_window import slide
from onert_llvm.kernels.contraction.epilogue import ACC, PLAIN, Epilogue
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.im2col import Patch
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.kernels.data_movement.gather import Gather
from onert_llvm.kernels.data_movement.strided_copy import Core, Move
from onert_llvm.kernels.elementwise.elementwise import Elementwise
from onert_llvm.kernels.elementwise.pairwise import Affine, PairTable, Pairwise
from onert_llvm.kernels.elementwise.tables import MapBytes
from onert_llvm.kernels.reduction.elements import Elements, Plain
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.fused_rows import Number, RowChain, Total
from onert_llvm.kernels.reduction.pool import Pool, WindowPool
from onert_llvm.kernels.reduction.quantized_elements import Quantized
from onert_llvm.kernels.reduction.reduce import ArgColumns, ArgNarrow, ArgRows, ArgShortRows, ReduceColumns, ReduceRows
from onert_llvm.kernels.reduction.softmax_norm import Norm, Normalize, Softmax
from onert_llvm.kernels.vision_audio.pixels import Pixels
from onert_llvm.kernels.vision_audio.resize import BilinearIntegers, Blend, ResizeBilinear, ResizePlanes
from onert_llvm.kernels.vision_audio.resize_pixels import ResizePixels
from onert_llvm.runtime.elf import parse
from onert_llvm.schedule.cost_model import Shape, product_tile, row_work
from onert_llvm.schedule.depthwise import registers_together, strip
from onert_llvm.schedule.line_tiles import line_tile
from onert_llvm.target.isa import ISAS, Isa, target

from .contractions import conv_f32, conv_int8, gemm_f32, gemm_int8, patch_conv_int8

LEGACY = Requantize(weight_zero_point=True)
PATCH = Patch(3, 9)
POOLED: tuple[Elements, ...] = (
    Plain(Fold.SUM, mean=True), Plain(Fold.MAX), Plain(Fold.SUM, mean=True, squared=True),
    Quantized(Fold.SUM, Kind.I8, True, clamped=True), Quantized(Fold.MAX, Kind.U8),
    Quantized(Fold.SUM, Kind.I16, True), Quantized(Fold.MAX, Kind.I16, clamped=True),
)  # fmt: skip


def _algorithms(isa: Isa) -> tuple[Algorithm, ...]:
    real, whole = product_tile(50, 70, 33, isa), product_tile(50, 70, 33, isa, integer=True)
    cut, line = strip((3, 3), 1, 1, 7, 20, isa), line_tile((3, 3), 2, 3, 9, 40, isa).tile
    swish = Epilogue(hard_swish(ACC), bias=True)
    return (
        gemm_f32(real, swish), conv_f32(real), conv_f32(real, packed=False),
        BatchedContraction(real, FloatTerms(masked=True), PLAIN, True),
        BatchedContraction(real, FloatTerms(), swish, True),
        BatchedContraction(Tile(1, columns(70, 1, isa)), DotTerms(), swish, rows=True),
        LineConvF32(line, Lines(3, 9, 6)),
        DepthwiseF32(cut, swish), Pool(Plain(Fold.SUM, mean=True), cut),
        gemm_int8(whole, 33 % isa.group), conv_int8(whole, 1, False, Requantize(Scaling.WIDE, True)),
        patch_conv_int8(whole, PATCH),
        DepthwiseIntegers(slide((3, 3), 1, 1, 20, isa), registers_together(isa), True, LEGACY),
        *(Pool(elements, cut) for elements in POOLED[3:]),
        Elementwise(Apply(Fn.TANH, (ACC,)), (True,)), Pairwise(Affine()), PairTable(), MapBytes(),
        ReduceRows(Plain(Fold.SUM)), ReduceRows(Plain(Fold.SUM), True), ReduceColumns(Plain(Fold.MAX)),
        *(Move(core, 4, 2, 4, 3) for core in Core), Move(Core.UNWEAVE, 4, 0, 4, 4), Move(Core.RUN, 1, 0),
        Move(Core.EACH, 16, 1), Gather(1, 2, True), PlaneConvF32(2, 3, 0, swish), PlaneConvF32(1, 8, 3),
        PlaneConvF32(1, 8, rows=2),
        RowChain((Total(Fold.SUM, ACC, True), Number(Apply(Fn.NEG, (Leaf("s0"),)))), Leaf("s1"), (ACC.name,)),
        Softmax(), Softmax(logarithm=True), *(Normalize(norm, True, True) for norm in Norm), ResizeBilinear(), Blend(),
        ResizePlanes(), ResizePixels(Pixels(3)), ResizePixels(Pixels(2), I8), BilinearIntegers(pixels=Pixels(3)),
        *(WindowPool(elements) for elements in POOLED), ArgColumns(True, Kind.I8, True), ArgRows(False, Kind.F32, True),
        ArgNarrow(True, Kind.I8, False), ArgShortRows(True, Kind.F32, True),
        *(ReduceColumns(Plain(Fold.MIN, kind), 1) for kind in Kind),
        *(ReduceRows(Plain(Fold.MAX, kind)) for kind in Kind),
        *(Elementwise(Apply(fn, (ACC,)), (True,), 2, True) for fn in (Fn.FLOOR, Fn.ROUND, Fn.SIN, Fn.ELU, Fn.LOG)),
        *(Elementwise(Apply(Fn.CAST, (ACC,), kind), (True,)) for kind in Kind),
        *(Elementwise(Apply(Fn.CAST, (Leaf("x", kind),), Kind.F32), (True,)) for kind in Kind),
    )  # fmt: skip


MOST_ABLE = {isa.architecture[:5]: isa for isa in ISAS}
"""The last target of each architecture. The kernels of the others are a subset and are tested in the long suite."""


@pytest.mark.parametrize(
    "isa",
    [
        pytest.param(isa, id=isa.name, marks=() if isa is MOST_ABLE[isa.architecture[:5]] else pytest.mark.long)
        for isa in ISAS
    ],
)
def test_every_kernel_compiles_for_every_target(isa: Isa) -> None:
    known = {"x86_64": {1, 2, 4}, "aarch64": {275, 277, 278, 282, 283, 284, 285, 286, 299}}.get(isa.architecture)
    for algorithm in _algorithms(isa):
        spec = KernelSpec(algorithm, isa)
        made = compile_text(str(build(spec)), isa)
        if known is None:  # for bundles alone: never loaded into this process
            assert made.startswith((b"\x7fELF", b"\0asm"))
            continue
        found = parse(made)
        assert [s.name for s in found.symbols if s.exported] == [spec.symbol]
        assert {r.kind for r in found.relocations} <= known, algorithm
        assert all(r.symbol.section is not None for r in found.relocations), algorithm


def test_equal_specs_produce_equal_symbols_and_code() -> None:
    isa = target("x86-64-v3")
    one, two = (KernelSpec(gemm_f32(product_tile(4, 4, 4, isa), Epilogue(clamp(ACC, 0.0, 6.0))), isa) for _ in range(2))
    assert one == two
    assert one.symbol == two.symbol
    assert str(build(one)) == str(build(two))
    other = KernelSpec(gemm_f32(product_tile(4, 4, 4, isa), Epilogue(clamp(ACC, 0.0, 5.0))), isa)
    assert other.symbol != one.symbol


def test_a_task_must_have_exactly_the_slots_of_its_layout() -> None:
    layout = TaskLayout(("a", "n", "scale"))
    assert layout.fill(a=1 << 40, n=-1, scale=1.0).tolist() == [1 << 40, (1 << 64) - 1, 0x3F800000]
    with pytest.raises(BackendError, match="missing or unknown: n"):
        layout.fill(a=1, scale=1.0)
    with pytest.raises(BackendError, match="missing or unknown: m"):
        layout.fill(a=1, n=2, scale=1.0, m=3)


def test_work_covers_all_rows_and_is_balanced_across_threads() -> None:
    isa = target("x86-64-v4")
    for m in (1, 5, 49, 200, 12544):
        for threads in (1, 2, 8):
            tile = product_tile(m, 64, 32, isa)
            work = row_work(Shape(m, 64, 32), tile, 1, 128, isa, threads)
            assert work.mc * work.tiles >= m > work.mc * (work.tiles - 1)
            blocks = -(-m // tile.mr)
            assert -(-work.tiles // threads) * work.mc // tile.mr <= 1.1 * -(-blocks // threads)


ALONE = """
import importlib.util, sys, types
found = importlib.util.find_spec("onert_llvm")
package = types.ModuleType("onert_llvm")
package.__path__ = list(found.submodule_search_locations)
sys.modules["onert_llvm"] = package
import onert_llvm.runtime.object_loader, onert_llvm.command.task_layout, onert_llvm.target.isa
sys.exit("llvmlite" in sys.modules)
"""
"""Imports the loader's modules without the imports of the package itself."""


def test_modules_that_load_code_do_not_import_llvmlite() -> None:
    assert subprocess.run([sys.executable, "-c", ALONE], check=False).returncode == 0
