"""Recurrent layers run natively and match their definitions, on every target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from cases.case import Case

from onert.backend import Settings
from onert.ir import DType, Quantization, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.compile import lowered
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.recurrent.gru_f32 import GruF32
from onert_llvm.kernels.recurrent.matvec import Matrix, cut, full_panels
from onert_llvm.schedule.float_packing import pack_f32
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, run
from .natively import assert_close, evaluated, natively, sequence_of, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
BY_STEPS = pytest.mark.parametrize(
    "isa",
    [*runnable(), *(evolve(isa, small=True) for isa in (runnable()[0], runnable()[-1]))],
    ids=lambda isa: isa.name + " by steps" * isa.small,
)
"""Also targets with little memory, where inputs are multiplied step by step."""

GATES = range(4)


def _runs(case: Case, isa: Isa, variable: Sequence[int], threads: int = 1) -> None:
    """Compare native results with the definition; all operands except `variable` are constants."""
    constant = [i for i, a in enumerate(case.inputs) if a is not None and i not in variable]
    subgraph = subgraph_of(case, constant)
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i in variable]
    assert_close(natively(subgraph, inputs, isa, threads), evaluated(subgraph, inputs))


# ---- float LSTMs


def _floats(sizes: tuple[int, int, int, int, int], *parts: str, seed: int = 0, **attributes: Any) -> Case:
    """A random layer; `sizes` are steps, batch, inputs, cells and outputs."""
    steps, batch, inputs, cells, outputs = sizes
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    first = 1 if "coupled" in parts else 0

    def gates(*shape: int, there: bool = True) -> list[Array | None]:
        return [some(*shape) if there and at >= first else None for at in GATES]

    recurrent = gates(cells) if "diagonal" in parts else gates(cells, outputs)
    peephole, norm = gates(cells, there="peephole" in parts), gates(cells, there="norm" in parts)
    projection = (some(outputs, cells), some(outputs)) if "projection" in parts else (None, None)
    weights = (*gates(cells, inputs), *recurrent, peephole[0], peephole[1], peephole[3], *gates(cells), *projection)
    shape = (steps, batch, inputs) if attributes.get("time_major") else (batch, steps, inputs)
    return Case("", LSTM(**attributes), (some(*shape), *weights, some(batch, outputs), some(batch, cells), *norm))


@BY_STEPS
@pytest.mark.parametrize(
    ("sizes", "parts", "attributes"),
    [
        ((7, 1, 5, 33, 33), (), {}),
        ((3, 5, 40, 70, 70), ("coupled", "diagonal"), {"time_major": True, "activation": Activation.RELU}),
        ((4, 2, 17, 50, 50), ("peephole", "norm"), {"cell_clip": 0.7}),
        ((4, 3, 9, 64, 21), ("peephole", "projection"), {"projection_clip": 0.9, "time_major": True}),
        ((3, 2, 9, 21, 64), ("projection",), {}),
        ((2, 1, 3, 1, 1), ("coupled", "norm", "peephole", "projection"), {}),
    ],
    ids=["plain", "diagonal", "normalised", "projected", "projected to more outputs than cells", "one cell"],
)
def test_float_lstms_run_natively(isa: Isa, sizes: Any, parts: tuple[str, ...], attributes: dict[str, Any]) -> None:
    _runs(_floats(sizes, *parts, **attributes), isa, (0, 18, 19))


@ISAS
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [2, 11, 16])
def test_lstm_batches_are_multiplied_together_and_may_be_shared_by_threads(isa: Isa, batch: int, threads: int) -> None:
    _runs(_floats((4, batch, 8, 50, 50), "peephole"), isa, (0, 18, 19), threads=threads)


@BY_STEPS
@pytest.mark.parametrize("weight", [0.5, np.inf])
def test_the_first_of_an_lstms_steps_has_no_product_if_outputs_are_zeros_before(isa: Isa, weight: float) -> None:
    case = _floats((2, 3, 4, 8, 8))
    inputs = [*case.inputs]
    inputs[18], inputs[8] = np.zeros((3, 8), np.float32), np.full((8, 8), weight, np.float32)
    case = evolve(case, inputs=tuple(inputs))
    _runs(case, isa, (0, 19))
    flops = [
        sum(c.flops for c in lowered(sequence_of(graph, Settings()), isa, Settings()).commands)
        for graph in (
            subgraph_of(case, [i for i in range(20) if i not in variable]) for variable in ((0, 19), (0, 18, 19))
        )
    ]
    assert (flops[0] < flops[1]) is (weight < np.inf and not isa.small)


# ---- int8 LSTMs with 16-bit gates


def _q(scale: float, zero: int = 0) -> Quantization:
    return Quantization((scale,), (zero,))


def _wide(
    sizes: tuple[int, int, int, int, int], *parts: str, state: int = -11, seed: int = 0, **attributes: Any
) -> Case:
    """Like `_floats` with integers; the cell state has the scale `2**state`."""
    steps, batch, inputs, cells, outputs = sizes
    rng = np.random.default_rng(seed)

    def some(bits: int, *shape: int) -> Array:
        bound = 1 << (bits - 1)
        return rng.integers(-bound, bound, shape).astype({8: np.int8, 16: np.int16, 12: np.int32}[bits])

    first = 1 if "coupled" in parts else 0

    def gates(bits: int, *shape: int, there: bool = True) -> list[Array | None]:
        return [some(bits, *shape) if there and at >= first else None for at in GATES]

    def kinds(operands: Sequence[Array | None], least: float) -> list[Quantization | None]:
        return [None if o is None else _q(float(rng.uniform(least, 4 * least))) for o in operands]

    weights, recurrent = gates(8, cells, inputs), gates(8, cells, outputs)
    peephole = gates(16, cells, there="peephole" in parts)
    peephole = [peephole[0], peephole[1], peephole[3]]
    projection = (some(8, outputs, cells), some(12, outputs)) if "projection" in parts else (None, None)
    x, h, hidden = _q(0.01, 3), _q(0.008, -5), _q(1 / 120, 7)
    sums = TensorType(DType.INT16, (1,))
    shape = (steps, batch, inputs) if attributes.get("time_major") else (batch, steps, inputs)
    arrays = (
        *(some(8, *shape), *weights, *recurrent, *peephole, *gates(12, cells), *projection),
        *(some(8, batch, outputs), some(16, batch, cells)),
    )
    quantization = (
        *(x, *kinds(weights, 0.003), *kinds(recurrent, 0.002), *kinds(peephole, 1e-5), *(None,) * 4),
        *(None if projection[0] is None else _q(0.004), None, h, _q(2.0**state)),
    )
    op = LSTM(intermediates=(sums, sums, sums, sums, TensorType(DType.INT8, (1,), hidden)), **attributes)
    return Case("", op, arrays, None, quantization, (h, h, _q(2.0**state)))


@BY_STEPS
@pytest.mark.parametrize(
    ("sizes", "parts", "attributes"),
    [
        ((7, 2, 5, 33, 33), (), {}),
        ((3, 3, 66, 70, 70), ("coupled",), {"time_major": True, "state": -15}),
        ((5, 2, 31, 49, 49), ("peephole",), {"cell_clip": 3.0, "state": -9}),
        ((5, 3, 8, 64, 22), ("peephole", "projection"), {"projection_clip": 0.5}),
        ((3, 2, 9, 21, 64), ("projection",), {}),
        ((2, 1, 3, 1, 1), ("coupled", "projection"), {"state": -12}),
    ],
    ids=["plain", "coupled", "peepholes", "projected", "projected to more outputs than cells", "one cell"],
)
def test_integer_lstms_run_natively(isa: Isa, sizes: Any, parts: tuple[str, ...], attributes: dict[str, Any]) -> None:
    _runs(_wide(sizes, *parts, **attributes), isa, (0, 18, 19))


# ---- float LSTMs with int8 weights (dynamic range)


def _dynamic(sizes: tuple[int, int, int, int, int], *parts: str, unsigned: bool = False, **attributes: Any) -> Case:
    """A float layer with int8 weights, each matrix with its own scale."""
    case = _floats(sizes, *parts, **attributes)
    arrays = list(case.inputs)
    quantization: list[Quantization | None] = [None] * len(arrays)
    for i in (*range(1, 12), 16):
        array = arrays[i]
        if array is not None:
            quantization[i] = _q(1.0 / (100 + i))
            stored = np.clip(np.round(array * (100 + i)), -127, 127).astype(np.int8)
            arrays[i] = stored.view(np.uint8) if unsigned else stored
    return Case("", case.op, tuple(arrays), None, tuple(quantization))


@ISAS
@pytest.mark.parametrize(
    ("sizes", "parts", "attributes"),
    [
        ((9, 1, 5, 33, 33), (), {}),
        ((5, 3, 40, 70, 70), ("coupled", "peephole"), {"time_major": True, "asymmetric_inputs": True}),
        ((4, 2, 9, 64, 21), ("peephole", "projection"), {"projection_clip": 0.9, "cell_clip": 0.8}),
        ((3, 2, 9, 21, 64), ("projection",), {}),
        ((6, 2, 3, 17, 17), (), {"asymmetric_inputs": True, "activation": Activation.RELU, "unsigned": True}),
    ],
    ids=["plain", "coupled", "projected", "projected to more outputs than cells", "unsigned"],
)
def test_dynamic_range_lstms_run_natively(
    isa: Isa, sizes: Any, parts: tuple[str, ...], attributes: dict[str, Any]
) -> None:
    """Compared almost exactly, because rounding differences must not change quantised values."""
    case = _dynamic(sizes, *parts, **attributes)
    constant = [i for i, a in enumerate(case.inputs) if a is not None and i not in (0, 18, 19)]
    subgraph, inputs = subgraph_of(case, constant), [a for i in (0, 18, 19) if (a := case.inputs[i]) is not None]
    assert_close(natively(subgraph, inputs, isa), evaluated(subgraph, inputs), 2e-7)


# ---- layers decomposed into other operations


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-0.7, 0.7, shape).astype(np.float32)


def _bytes(array: Array) -> Array:
    return np.clip(np.round(array * 150), -127, 127).astype(np.int8)


@ISAS
@pytest.mark.parametrize("backward", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize(("steps", "batch", "major"), [(1, 3, False), (6, 1, False), (5, 2, True), (4, 3, False)])
def test_simple_rnns_run_natively(isa: Isa, steps: int, batch: int, major: bool, backward: bool) -> None:
    x = _random(steps, batch, 9) if major else _random(batch, steps, 9)
    weights = (_random(21, 9), _random(21, 21), _random(21), _random(batch, 21))
    if not backward:
        _runs(Case("", RNN(Activation.TANH, major), (x, *weights)), isa, (0, 4))
        return
    others = (_random(13, 9), _random(13, 13), _random(13), _random(batch, 13))
    _runs(Case("", BidirectionalRNN(Activation.RELU, major, True), (x, *weights, *others)), isa, (0, 4, 8))
    linked = (_random(*x.shape[:2], 5), _random(21, 5), _random(13, 5))
    _runs(Case("", BidirectionalRNN(Activation.TANH, major), (x, *weights, *others, *linked)), isa, (0, 4, 8, 9))


def _gru(steps: int, batch: int, units: int, every: bool = True, biased: bool = True) -> Case:
    biases = [_random(3 * units) if biased else None for _ in range(2)]
    weights = _random(3 * units, 6), biases[0], _random(3 * units, units), biases[1]
    return Case("", GRU(every), (_random(steps, batch, 6), *weights, _random(batch, units)))


@ISAS
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("every", [False, True])
def test_grus_run_natively_and_threads_share_the_batch(isa: Isa, every: bool, threads: int) -> None:
    settings = Settings(num_threads=threads, target=isa.name)
    for steps, batch, biased in ((1, 2, True), (5, 1, False), (5, 11, True)):
        case = _gru(steps, batch, 17, every, biased)
        _runs(case, isa, (0, 5), threads=threads)
        commands = lowered(sequence_of(subgraph_of(case, (1, 2, 3, 4)), settings), isa, settings).commands
        assert [c.pieces for c in commands if c.spec.name == "gru_f32"] == [min(batch, threads)]


@ISAS
@pytest.mark.parametrize("from_zero", [False, True])
def test_a_gru_that_starts_with_zeros_has_no_first_product(isa: Isa, from_zero: bool) -> None:
    case = _gru(2, 3, 9)
    case = evolve(case, inputs=(*case.inputs[:5], np.zeros((3, 9), np.float32)))
    _runs(case, isa, (0,) if from_zero else (0, 5))


@ISAS
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", [_floats((4, 11, 8, 50, 50)), _gru(4, 11, 50)], ids=["LSTM", "GRU"])
def test_a_sequence_has_the_same_bits_in_any_batch(isa: Isa, case: Case, threads: int) -> None:
    states = (18, 19) if isinstance(case.op, LSTM) else (5,)
    constant = [i for i in range(len(case.inputs)) if i not in (0, *states)]
    axis = 0 if isinstance(case.op, LSTM) else 1

    def part(i: int, array: Array | None, items: Sequence[int]) -> Array | None:
        if array is None or i in constant:
            return array
        return np.ascontiguousarray(array.take(items, 0 if i else axis))

    def run(items: Sequence[int], threads: int) -> list[Array]:
        some = tuple(part(i, a, items) for i, a in enumerate(case.inputs))
        given = [a for i, a in enumerate(some) if i not in constant and a is not None]
        return natively(subgraph_of(evolve(case, inputs=some), constant), given, isa, threads)

    every = run(range(11), threads)
    for item in range(11):
        for number, (found, expected) in enumerate(zip(run([item], 1), every, strict=True)):
            np.testing.assert_array_equal(found, expected.take([item], 0 if number else axis))


@ISAS
@pytest.mark.parametrize(("rank", "memory"), [(1, 7), (2, 1), (2, 33)])
def test_float_and_dynamic_range_svdfs_run_natively(isa: Isa, rank: int, memory: int) -> None:
    arrays = [_random(3, 11), _random(18, 11), _random(18, memory), _random(18 // rank), _random(3, 18 * memory)]
    _runs(Case("", SVDF(rank, Activation.RELU), tuple(arrays)), isa, (0, 4))
    arrays[1:3] = [_bytes(arrays[1]), _bytes(arrays[2])]
    quantization = (None, _q(1 / 150), _q(1 / 150))
    _runs(Case("", SVDF(rank, asymmetric_inputs=rank > 1), tuple(arrays), None, quantization), isa, (0, 4))


@ISAS
@pytest.mark.parametrize("wide", [False, True], ids=["8 bits", "16 bits"])
@pytest.mark.parametrize(("rank", "memory"), [(1, 7), (2, 1), (3, 40)])
def test_integer_svdfs_run_natively(isa: Isa, rank: int, memory: int, wide: bool) -> None:
    rng = np.random.default_rng(rank)
    held = np.dtype(np.int16 if wide else np.int8)

    def some(dtype: np.dtype[Any], *shape: int) -> Array:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

    x, feature = some(np.dtype(np.int8), 3, 11), some(np.dtype(np.int8), 18, 11)
    time, state = some(held, 18, memory), some(held, 3, 18 * memory)
    bias = rng.integers(-9999, 9999, 18 // rank).astype(np.int32)
    scales = (_q(0.05, 7), _q(0.01), _q(1e-4 if wide else 0.02), _q(4e-4, 0) if wide else _q(0.05, -3))
    quantization = (*scales[:3], None, scales[3])
    case = Case("", SVDF(rank), (x, feature, time, bias, state), None, quantization, (_q(0.2, -9), scales[3]))
    _runs(case, isa, (0, 4))


@ISAS
@pytest.mark.parametrize("aux", ["none", "stacked", "linked"])
def test_bidirectional_lstms_run_natively(isa: Isa, aux: str) -> None:
    layers = [_floats((4, 2, 6, 19, 19), "peephole", seed=seed).inputs for seed in (1, 2)]
    more = _random(2, 4, 5 if aux == "linked" else 6)
    last = {"none": (), "stacked": (more,), "linked": (more, *(_random(19, 5, seed=s) for s in range(8)))}[aux]
    states = (*layers[0][18:20], *layers[1][18:20])
    case = Case("", BidirectionalLSTM(), (layers[0][0], *layers[0][1:18], *layers[1][1:18], *states, *last))
    _runs(case, isa, (0, 35, 36, 37, 38, 39))


@ISAS
def test_a_basic_lstm_runs_natively(isa: Isa) -> None:
    arrays = (_random(2, 9), _random(2, 21), _random(84, 30), _random(84), _random(2, 21, seed=5))
    _runs(Case("", BasicLSTM(), arrays), isa, (0, 1, 4))


def test_an_lstm_with_computed_weights_is_not_native() -> None:
    case = _floats((2, 1, 3, 4, 4))
    assert why_not(subgraph_of(case, (1, 2))) == "the weights are not constant"


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("tiles", [0, 2])
def test_items_that_advance_together_are_touched_only_by_a_command_with_tiles(isa: Isa, tiles: int) -> None:
    """The commands that the lengths do not choose run with no tiles; multiplying nothing took as long as one item."""
    units, steps, batch = 20, 3, 2
    padded = isa.whole(units)
    columns = cut(3 * padded, isa)
    matrix = Matrix.of("recurrent", 3 * padded, columns, isa, Terms.FLOAT)
    packed = pack_f32(np.ones((units, 3 * padded), np.float32), columns, isa)
    y, room = np.zeros((steps, batch, units), np.float32), np.full((batch, 3 * padded), 7, np.float32)
    slots = {
        "given": np.zeros((steps, batch, 3 * padded), np.float32), "given_item": 3 * padded,
        "given_step": batch * 3 * padded, "y": y, "y_item": units, "y_step": batch * units, "steps": steps,
        "h": np.ones((batch, units), np.float32), "outputs": units, "padded": padded, "scratch": room,
        "room": 3 * padded, "bias": np.zeros(3 * padded, np.float32), "recurrent": packed,
        "recurrent_full": full_panels(3 * padded, columns, isa),
    }  # fmt: skip
    run(KernelSpec(GruF32(matrix, together=True), isa), tiles, slots)
    assert (room == 7).all() == (tiles == 0)
    assert y.any() == (tiles > 0)
