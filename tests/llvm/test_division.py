"""Units of recurrent layers are divided among threads: same bits, and no thread depends on another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from cases.case import Case

from onert.backend import Settings
from onert.ir import DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.compile import lowered
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.recurrent.division import progress_bytes
from onert_llvm.kernels.recurrent.gru_f32 import GruF32
from onert_llvm.kernels.recurrent.matvec import Matrix, cut, full_panels
from onert_llvm.schedule.float_packing import pack_f32
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, call, run
from .natively import assert_close, evaluated, natively, sequence_of, subgraph_of

BFLOAT = DType.BFLOAT16.numpy
ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _lstm(steps: int, batch: int, units: int, first: int = 0, peephole: bool = False, **attributes: Any) -> Case:
    """A layer whose gates before `first` are absent."""
    seeds = iter(range(30))

    def gates(*shape: int, there: bool = True) -> list[Array | None]:
        return [_random(*shape, seed=next(seeds)) / 4 if there and at >= first else None for at in range(4)]

    vectors = gates(units, there=peephole)
    weights = (*gates(units, 6), *gates(units, units), vectors[0], vectors[1], vectors[3], *gates(units))
    x = _random(steps, batch, 6) if attributes.get("time_major") else _random(batch, steps, 6)
    return Case("", LSTM(**attributes), (x, *weights, None, None, _random(batch, units), _random(batch, units, seed=9)))


def _gru(steps: int, batch: int, units: int, every: bool = True, depth: int = 6) -> Case:
    weights = _random(3 * units, depth), _random(3 * units), _random(3 * units, units) / 4, _random(3 * units, seed=1)
    return Case("", GRU(every), (_random(steps, batch, depth), *weights, _random(batch, units)))


def _of_bfloats(case: Case) -> Case:
    """The case with operands that are bfloat16 numbers, which are stored as such if they are many."""
    return evolve(case, inputs=tuple(None if a is None else a.astype(BFLOAT).astype(a.dtype) for a in case.inputs))


CASES = {
    "LSTM": _lstm(3, 1, 100),
    "LSTM batch": _lstm(3, 5, 98, time_major=True),
    "LSTM of one step": _lstm(1, 1, 160),
    "coupled LSTM": _lstm(2, 1, 128, 1, True, activation=Activation.RELU),
    "clipped LSTM": _lstm(2, 2, 97, 0, True, cell_clip=0.4),
    "GRU": _gru(3, 1, 130),
    "GRU of two steps": _gru(2, 1, 102, depth=24),
    "GRU with many weights only if padded": _of_bfloats(_gru(2, 1, 102, depth=180)),
    "GRU batch": _gru(3, 4, 113),
    "last of a GRU": _gru(4, 1, 128, False),
    "last of a GRU batch": _gru(3, 3, 100, False),
}


def _constants(case: Case) -> list[int]:
    states = (18, 19) if isinstance(case.op, LSTM) else (5,)
    return [i for i, a in enumerate(case.inputs) if a is not None and i not in (0, *states)]


@ISAS
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_layers_have_the_same_bits_if_their_units_are_divided(isa: Isa, case: Case) -> None:
    graph = subgraph_of(case, _constants(case))
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in _constants(case)]
    alone = natively(graph, inputs, isa, 1)
    assert_close(alone, evaluated(graph, inputs))
    for threads in (2, 3):
        settings = Settings(num_threads=threads, target=isa.name)
        commands = lowered(sequence_of(graph, settings), isa, settings).commands
        assert [c.pieces > 1 for c in commands if "progress" in c.slots] == [True]
        for found, expected in zip(natively(graph, inputs, isa, threads, runs=2), alone, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", [_lstm(3, 1, 32), _gru(3, 1, 48)], ids=["LSTM", "GRU"])
def test_short_steps_are_not_divided(case: Case) -> None:
    isa, settings = runnable()[-1], Settings(num_threads=2)
    graph = subgraph_of(case, _constants(case))
    commands = lowered(sequence_of(graph, settings), isa, settings).commands
    assert not any("progress" in c.slots for c in commands)


STEPS, UNITS, PARTS = 4, 64, 2


def _slots(isa: Isa, weights: Array, parts: int) -> tuple[GruF32, dict[str, Any]]:
    """A layer of `weights` `[units, 3 * units]`, and its task's slots."""
    padded = UNITS // parts
    width = 3 * padded
    columns = cut(width, isa)
    ordered = weights.reshape(UNITS, 3, parts, padded).transpose(2, 0, 1, 3).reshape(parts, UNITS, width)
    matrix = Matrix.of("recurrent", width, columns, isa, Terms.FLOAT)
    given = _random(STEPS, 3, parts, padded).swapaxes(1, 2)
    slots = {
        "given": np.ascontiguousarray(given), "given_item": 3 * UNITS, "given_step": 3 * UNITS,
        "y": np.zeros((STEPS, UNITS), np.float32), "y_item": UNITS, "y_step": UNITS, "steps": STEPS,
        "h": _random(1, UNITS, seed=5), "outputs": UNITS, "padded": padded,
        "scratch": np.full((2, width), 7, np.float32), "room": width, "bias": np.zeros(3 * UNITS, np.float32),
        "recurrent": np.concatenate([pack_f32(part, columns, isa) for part in ordered]),
        "recurrent_full": full_panels(width, columns, isa),
        "progress": np.zeros(progress_bytes(parts) // 8, np.int64), "parts": parts, "items": 1,
    }  # fmt: skip
    layer = GruF32(matrix, divided=parts > 1)
    return layer, {name: slots[name] for name in layer.slots}


@ISAS
@pytest.mark.parametrize(
    ("calls", "begun"),
    [
        ([(0, 2)], {}),
        ([(0, 1), (1, 2)], {}),
        ([(1, 2), (0, 1)], {}),
        ([(1, 2), (0, 1)], {0: 1}),
        ([(0, 1), (1, 2)], {1: 1}),
        ([(0, 1), (0, 1), (1, 2)], {0: 1, 1: 1}),
    ],
    ids=["one thread", "in turn", "latest first", "first was begun", "second was begun", "both were begun"],
)
def test_threads_compute_what_others_have_not_begun_or_do_not_finish(
    isa: Isa, calls: Sequence[tuple[int, int]], begun: dict[int, int]
) -> None:
    """A part that was `begun` belongs to a thread that lost its processor: it never comes back here."""
    weights = _random(UNITS, 3 * UNITS, seed=3) / 4
    whole, expected = _slots(isa, weights, 1)
    run(KernelSpec(whole, isa), 1, expected)
    layer, slots = _slots(isa, weights, PARTS)
    for part, steps in begun.items():
        slots["progress"].reshape(PARTS, 2, 8)[part, 0, 0] = steps
    for thread, tiles in enumerate(calls):
        call(KernelSpec(layer, isa), slots, tiles, thread % 2)
    np.testing.assert_array_equal(slots["y"], expected["y"])
    assert (slots["progress"].reshape(PARTS, 2, 8)[:, 1, 0] == STEPS).all()
