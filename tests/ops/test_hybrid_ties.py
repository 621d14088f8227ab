"""Dynamic-range layers equal LiteRT bit for bit for inputs at or next to ties between two quantised values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import litert_peer as litert
import lstm_trials as lstms
import numpy as np
import pytest
import recurrent_trials as trials
from attrs import evolve
from recurrent_trials import Draw, Trial, floats

import onert
from onert.ir import Array, DType, Quantization, TensorType


def _ties(rng: np.random.Generator, shape: tuple[int, ...], rows: int, asymmetric: bool) -> Array:
    """`rows` rows whose elements become k + 1/2 when divided by the row's scale, or the adjacent floats."""
    out = rng.normal(0, 3, (rows, int(np.prod(shape)) // rows)).astype(np.float32)
    low, high = np.minimum(out.min(1), 0)[:, None], np.maximum(out.max(1), 0)[:, None]
    scale = (high - low) / np.float32(255) if asymmetric else np.maximum(high, -low) / np.float32(127)
    middles = (rng.integers(-3, 3, out.shape) + np.float32(0.5)) * scale
    beside = np.nextafter(middles, np.where(rng.integers(0, 2, out.shape), np.inf, -np.inf).astype(np.float32))
    ties = np.where(rng.integers(0, 2, out.shape), middles, beside).astype(np.float32)
    extreme = (out == low) | (out == high) | (rng.integers(0, 8, out.shape) == 0)
    return np.where(extreme, out, np.clip(ties, low, high)).reshape(shape)


def _layer(
    code: str,
    options: tuple[str, Mapping[str, Any]],
    shape: tuple[int, ...],
    weight: tuple[tuple[int, ...], int, int | None],
    result: tuple[int, ...],
    asymmetric: bool,
    items: int,
) -> Trial:
    """A layer with one filter (shape, axis of its outputs, number of scales) whose input has `items` separate rows."""
    draw = Draw(f"{code} {shape} {asymmetric}", "hybrid")
    draw.input(shape)
    filters, axis, scales = weight
    if scales is None:
        quantization = Quantization((0.5,), (0,))
    else:
        each = draw.rng.uniform(0.1, 0.4, scales).astype(np.float32)
        quantization = Quantization(tuple(map(float, each)), (0,) * scales, axis)
    draw.constants[1] = draw.rng.integers(-127, 127, filters, np.int8, endpoint=True)
    draw.types.append(TensorType(DType.INT8, filters, quantization))
    if code != "BATCH_MATMUL":
        draw.real((filters[axis],))
    trial = draw.trial(code, options[0], options[1], [floats(*result)])
    rounds = tuple((_ties(draw.rng, shape, items, asymmetric),) for _ in range(3))
    return evolve(trial, name=f"{shape} asymmetric {asymmetric}", rounds=rounds)


_WINDOW = {"padding": 0, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}


def _products() -> Iterator[Trial]:
    for asymmetric in (False, True):
        fields = {"asymmetricQuantizeInputs": asymmetric}
        for rows, depth in ((1, 3), (4, 8), (5, 29), (2, 67), (1, 20000)):
            yield _layer(
                "FULLY_CONNECTED",
                ("FullyConnectedOptions", fields),
                (rows, depth),
                ((16, depth), 0, None),
                (rows, 16),
                asymmetric,
                rows,
            )
        for rows, depth in ((3, 13), (4, 32)):
            yield _layer(
                "BATCH_MATMUL",
                ("BatchMatMulOptions", fields),
                (2, rows, depth),
                ((2, depth, 6), 2, None),
                (2, rows, 6),
                asymmetric,
                2 * rows,
            )


def _filters() -> Iterator[Trial]:
    for batch, channels in ((1, 5), (1, 8), (3, 4)):
        for scales in (None, 6):
            yield _layer(
                "CONV_2D",
                ("Conv2DOptions", _WINDOW),
                (batch, 5, 7, channels),
                ((6, 3, 3, channels), 0, scales),
                (batch, 5, 7, 6),
                scales is not None,
                batch,
            )
        yield _layer(
            "DEPTHWISE_CONV_2D",
            ("DepthwiseConv2DOptions", {**_WINDOW, "depthMultiplier": 1}),
            (batch, 5, 7, channels),
            ((1, 3, 3, channels), 3, channels),
            (batch, 5, 7, channels),
            True,
            batch,
        )


def _recurrent() -> Iterator[Trial]:
    """A third of the recurrent layers of the other tests, with inputs at ties."""
    families = (lstms.long_hybrid(), lstms.long_bidirectional(), trials.long_rnn(), trials.rnn(), trials.svdf())
    for family in families:
        for trial in list(family)[::3]:
            weights = [t for i, t in enumerate(trial.types.inputs) if t is not None and i in trial.constants]
            if not any(t.dtype in (DType.INT8, DType.UINT8) for t in weights) or trial.rounds[0][0].dtype != np.float32:
                continue
            asymmetric = bool(trial.options[1].get("asymmetricQuantizeInputs"))
            rng = np.random.default_rng(len(trial.name))
            rounds = [
                tuple(_ties(rng, a.shape, int(np.prod(a.shape[:-1])), asymmetric) for a in given)
                for given in trial.rounds[:2]  # the last round is all zeros
            ]
            yield evolve(trial, rounds=tuple(rounds))


def _named(*families: Iterator[Trial]) -> list[Any]:
    return [pytest.param(trial, id=f"{trial.code} {trial.name}") for family in families for trial in family]


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
@pytest.mark.parametrize("trial", _named(_products(), _filters(), _recurrent()))
def test_dynamic_range_layers_equal_litert_at_ties(trial: Trial, backends: tuple[str, ...]) -> None:
    model = litert.one_operator(trial.code, trial.options, trial.types, trial.constants, trial.variables)
    execution = onert.Execution(onert.compile(onert.load(model), backends=backends))
    theirs = litert.run_again(model, trial.rounds)
    for given, expected in zip(trial.rounds, theirs, strict=True):
        for mine, other in zip(execution.run(given).values(), expected, strict=True):
            np.testing.assert_array_equal(mine, other)
