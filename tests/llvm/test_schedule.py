"""Schedules and bounds that are chosen before code is generated."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from attrs import evolve

from onert_llvm.kernels.contraction.register_tile import LINE, Columns, columns
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.kernels.contraction.winograd.winograd_f32 import room
from onert_llvm.schedule.cost_model import (
    Shape,
    _SplitAlong,
    _tile,
    near_tiles,
    packed_tile,
    product_tile,
    row_work,
)
from onert_llvm.schedule.float_packing import panels
from onert_llvm.schedule.tile_cycles import SPLITS
from onert_llvm.schedule.weight_packing import sum_bounds
from onert_llvm.schedule.winograd import Layer, blocks
from onert_llvm.target.figures import LISTED
from onert_llvm.target.isa import Isa, runnable
from onert_llvm.target.machines import machine, scratch_stride

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPES = [
    Shape(m, n, k, integer)
    for m, n, k, integer in product((1, 2, 5, 13, 196), (1, 17, 64, 130, 1000), (3, 64, 1152), (False, True))
]


@ISAS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_tile_fits_the_registers_and_the_rows(isa: Isa, shape: Shape) -> None:
    for tile in (packed_tile(shape, isa), product_tile(shape.m, shape.n, shape.k, isa, shape.integer)):
        wide = tile.columns.widest
        # Accumulators, one row of columns, one value per row; for integers also the value broadcast over the lanes.
        assert tile.mr * wide * tile.split + wide + (3 if shape.integer else 2) <= isa.registers
        assert tile.mr <= shape.m


@ISAS
@pytest.mark.parametrize("columns", [1, 8, 16, 17, 40, 130, 1000])
def test_products_sum_in_the_same_order_on_every_processor(isa: Isa, columns: int) -> None:
    for k in (3, 64, 258, 1152):
        for m in (*range(1, 18), 21, 33, 49, 196):
            shape, cpus = Shape(m, columns, k), [evolve(isa, processor=f"{name} : ") for name in ("", *LISTED)]
            for tiles in (
                [product_tile(m, columns, k, cpu) for cpu in cpus],
                [tile for cpu in cpus for tile in (packed_tile(shape, cpu), *near_tiles(shape, cpu, 5))],
            ):
                splits = {tile.split for tile in tiles}
                assert len(splits) == 1
                assert m < 16 or splits == {1}


@ISAS
@pytest.mark.parametrize("padded", [False, True], ids=["exact", "padded"])
@pytest.mark.parametrize("sizes", ["a 40 64", "3 a 64", "9 40 a", "16 40 a", "a a a", "a b 64", "3 a b", "a b a"])
def test_tabulated_summation_orders_equal_those_computed_for_each_length(isa: Isa, padded: bool, sizes: str) -> None:
    named = [("ab".index(size), True) if size in "ab" else (int(size), False) for size in sizes.split()]
    along = _SplitAlong(tuple(named), isa, padded)
    for counts in ((20, 50), (5, 7)) if "b" in sizes else ((5,), (300,)):
        found = along.results(*counts)
        for lengths in np.ndindex(*counts):
            assert 0 in lengths or found[lengths] == along(*lengths)


@ISAS
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES[::3], ids=str)
def test_work_tiles_cover_every_row_and_column(isa: Isa, shape: Shape, threads: int) -> None:
    tile = packed_tile(shape, isa)
    count = panels(shape.n, tile.columns, isa)
    work = row_work(shape, tile, count, shape.k, isa, threads)
    assert work.mc % tile.mr == 0
    groups, rest = divmod(work.tiles, count)
    assert rest == 0
    assert (groups - 1) * work.mc < shape.m <= groups * work.mc
    assert (count - 1) * tile.columns.widest * isa.f32 < shape.n <= count * tile.columns.widest * isa.f32


@ISAS
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("shape", [Shape(6400, 96, 48), Shape(6400, 48, 96), Shape(1600, 192, 96)], ids=str)
def test_long_float_products_are_split_into_many_tiles_for_threads(isa: Isa, shape: Shape, threads: int) -> None:
    tile = packed_tile(shape, isa)
    work = row_work(shape, tile, panels(shape.n, tile.columns, isa), 4 * shape.k, isa, threads)
    assert work.tiles >= 8 * threads
    assert work.mc >= 12 * tile.mr


@ISAS
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("terms", "few"), [(1, True), (4, True), (16, True), (64, False)])
def test_long_rows_of_short_sums_are_written_in_sequence(isa: Isa, threads: int, terms: int, few: bool) -> None:
    tile = product_tile(2000, 2000, terms, isa)
    count = panels(2000, tile.columns, isa)
    work = row_work(Shape(2000, 2000, terms), tile, count, 4 * terms, isa, threads)
    assert (work.mc == tile.mr) is few


@ISAS
def test_winograd_layers_are_split_into_blocks_that_fit_the_second_cache(isa: Isa) -> None:
    layer, total = Layer(Form(2), 96, 24, isa), 1600
    few, many = (blocks(layer, total, threads) for threads in (1, 2))
    assert many.block < few.block
    assert room(layer.form, many.tile, many.block, layer.steps, isa.f32) < machine(isa).second_cache


@ISAS
@pytest.mark.parametrize("integer", [False, True], ids=["floats", "bytes"])
def test_a_tile_with_existing_code_is_preferred_if_it_costs_little(isa: Isa, integer: bool) -> None:
    shape = Shape(196, 256, 1152, integer)
    best = packed_tile(shape, isa)
    slow = evolve(best, mr=1, columns=evolve(best.columns, vectors=1) if best.columns.padded else Columns(1))
    assert packed_tile(shape, isa, [slow]) == best
    assert packed_tile(shape, isa, [slow, best]) == best
    taken = set()
    for m in range(150, 197):
        own = evolve(shape, m=m)
        known = packed_tile(own, isa, [best])
        taken.add(known == best)
        assert known.split == packed_tile(own, isa).split
    assert True in taken


@ISAS
def test_a_tile_that_sums_in_another_order_is_never_chosen(isa: Isa) -> None:
    others = 0
    for shape in (Shape(m, n, k) for m, n, k in product((1, 2, 4), (16, 64, 130), (3, 10))):
        best = packed_tile(shape, isa)
        cuts = [Columns(wide, padded=True) if isa.free_masks else columns(shape.n, wide, isa) for wide in (1, 2, 3, 4)]
        for mr, cut, split in product((1, 2, 4), cuts, SPLITS):
            if split != best.split:
                others += 1
                assert packed_tile(shape, isa, [_tile(shape, isa, min(mr, shape.m), cut, split)]) == best
    assert others > 5


@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize("zero", [-128, -100, 0, 100, 127])
@pytest.mark.parametrize("weight_zero", [0, -9])
def test_bounds_of_sums_are_never_exceeded_and_nearly_tight(signed: bool, zero: int, weight_zero: int) -> None:
    rng = np.random.default_rng(zero + 200)
    input_zero = zero if signed else zero + 128
    low, high = (-128, 127) if signed else (0, 255)
    weights, bias = rng.integers(-128, 128, (50, 7)).astype(np.int8), rng.integers(-9999, 9999, 7)
    found = sum_bounds(weights, bias, input_zero, weight_zero, signed)
    centred = weights.astype(np.int64) - weight_zero
    worst = np.zeros(7, np.int64)
    for sign, end in product((1, -1), (low, high)):
        # Each input is at the end of its range that maximises its product, the others are at the zero point.
        inputs = np.where(centred * sign > 0, high - input_zero, low - input_zero)
        total = np.abs((inputs * centred).sum(0) + bias)
        every = np.abs(((end - input_zero) * np.abs(centred)).sum(0)) + np.abs(bias)
        worst = np.maximum(worst, total)
        assert (total <= found).all()
        assert (every <= found).all()
    assert (found <= 2 * worst + np.abs(bias)).all()


@ISAS
@pytest.mark.parametrize("threads", [2, 5])
def test_a_thread_s_scratch_memory_has_the_same_offset_for_layers_of_all_sizes(isa: Isa, threads: int) -> None:
    cache = machine(isa).second_cache
    assert {scratch_stride(size, threads, isa) for size in (1, 1000, cache)} == {cache}
    assert scratch_stride(cache + 1, threads, isa) == 2 * cache
    assert scratch_stride(1000, 1, isa) == 1000


@ISAS
@pytest.mark.parametrize("n", [16, 64, 1000])
@pytest.mark.parametrize("k", [256, 4096])
def test_a_single_row_prefetches_as_many_bytes_as_a_step_reads(isa: Isa, n: int, k: int) -> None:
    tile = product_tile(1, n, k, evolve(isa, processor="AuthenticAMD 26 : "))
    if tile.stream:
        read = tile.columns.widest * tile.split * isa.f32 * 4
        assert read <= tile.ahead * LINE < read + LINE
    else:
        assert tile.ahead == 0
