"""Recurrent layers and audio operations reject violations of their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from cases import audio, lstm, recurrent
from cases.case import Case

from onert.ir import Quantization, RuleError, evaluate

CASES = [case for module in (audio, lstm, recurrent) for case in module.CASES]


def _named(name: str, kind: str) -> Case:
    return next(c for c in CASES if c.name == name and type(c.op).__name__ == kind)


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("SVDF", "one filter a unit", {"rank": 0}, "rank is 0"),
    ("SVDF", "two filters a unit", {"rank": 3}, "there are 4 filters, expected a multiple of the rank 3"),
    ("LSTM", "bounded", {"cell_clip": -1.0}, "cell_clip is -1.0"),
    ("LSTM", "integers", {"intermediates": ()}, "there are 0 intermediates, expected 5 or 12"),
    ("AudioSpectrogram", "powers", {"stride": 0}, "stride is 0"),
    ("AudioSpectrogram", "powers", {"window_size": 1}, "window_size is 1"),
    ("Mfcc", "all bands", {"coefficients": 7}, "7 coefficients of 6 bands"),
    ("Mfcc", "all bands", {"upper": 1.0}, "bands are from 20.0 to 1.0 Hz"),
]


@pytest.mark.parametrize(("kind", "name", "changed", "sentence"), REFUSED)
def test_invalid_attributes_are_rejected(kind: str, name: str, changed: dict[str, Any], sentence: str) -> None:
    case = _named(name, kind)
    with pytest.raises(RuleError, match=sentence):
        evolve(case, op=evolve(case.op, **changed)).types()


ABSENT: list[tuple[str, str, tuple[int, ...], str]] = [
    ("LSTM", "batch first", (1,), "only one of the input gate's two weights"),
    ("LSTM", "batch first", (1, 5), "only one of the input gate's weights and bias is present"),
    ("LSTM", "peepholes", (10,), "only some of the gates have peephole weights"),
    ("LSTM", "projection", (16,), "there is a projection bias without weights|outputs without a projection"),
    ("LSTM", "normalised", (22,), "only some of the gates have normalisation weights"),
    ("BidirectionalRNN", "in both directions, a second sequence for both", (9,), "no auxiliary input"),
    ("BidirectionalRNN", "in both directions, a second sequence for both", (10,), "only one of the auxiliary weights"),
]


@pytest.mark.parametrize(("kind", "name", "absent", "sentence"), ABSENT)
def test_incomplete_groups_of_operands_are_rejected(
    kind: str, name: str, absent: tuple[int, ...], sentence: str
) -> None:
    case = _named(name, kind)
    inputs = tuple(None if at in absent else array for at, array in enumerate(case.inputs))
    with pytest.raises(RuleError, match=sentence):
        evolve(case, inputs=inputs).types()


def test_the_scale_of_a_cell_state_must_be_a_power_of_two() -> None:
    case = _named("integers", "LSTM")
    quantization = list(case.quantization)
    quantization[19] = Quantization((0.0007,), (0,))
    with pytest.raises(RuleError, match=r"cell state has scale 0\.0007, expected a power of two"):
        evolve(case, quantization=tuple(quantization)).types()


def test_integer_rnn_weights_must_be_quantised_per_tensor() -> None:
    case = _named("integer weights", "RNN")
    with pytest.raises(RuleError, match="weights is quantised per axis 0, expected per tensor"):
        evolve(case, quantization=(None, Quantization((0.5, 0.25), (0, 0), 0), *case.quantization[2:])).types()


def test_numeric_verify_rejects_a_difference_beyond_the_tolerance() -> None:
    case = _named("differences that are within bounds", "NumericVerify")
    case = evolve(case, inputs=(case.inputs[0], np.float32([0.25, 9.0])))
    with pytest.raises(RuleError, match=r"a value is 8\.0 from its reference, expected at most 0\.5"):
        evaluate(case.op, case.inputs, case.types())


def test_mfcc_rejects_a_sample_rate_of_zero() -> None:
    case = _named("all bands", "Mfcc")
    case = evolve(case, inputs=(case.inputs[0], np.int32([0])))
    with pytest.raises(RuleError, match="rate is 0, expected at least 1"):
        evaluate(case.op, case.inputs, case.types())
