"""Scales and zero points are immutable arrays of numbers, however many there are."""

from __future__ import annotations

import numpy as np
import pytest

from onert.compiler.program_cache.decoding import decode
from onert.compiler.program_cache.encoding import encode
from onert.compiler.program_cache.records import Records
from onert.ir import Quantization, RuleError


def _blocks(count: int, last: float = 0.5) -> Quantization:
    scales = np.linspace(0.25, last, count, dtype=np.float32)
    return Quantization(scales, np.zeros(count, np.int64), 1, 32)


def test_parameters_with_the_same_scales_are_equal() -> None:
    assert _blocks(5000) == _blocks(5000)
    assert hash(_blocks(5000)) == hash(_blocks(5000))
    assert _blocks(5000) != _blocks(5000, 0.75)
    assert Quantization((0.5, 0.5), (0, 0), 0) == Quantization([0.5, 0.5], np.zeros(2, np.int64), 0)
    assert Quantization((0.5, 0.5), (0, 0), 0) != Quantization((0.5,), (0,), 0)


def test_identical_zero_points_are_stored_once() -> None:
    zeros = _blocks(5000).zero_points
    assert (len(zeros.stored), len(zeros), zeros[4999], list(zeros[:3])) == (1, 5000, 0, [0, 0, 0])
    assert np.asarray(zeros).shape == (5000,)


def test_scales_are_read_only_copies() -> None:
    given = np.array([0.25, 0.5])
    quantization = Quantization(given, (0, 0), 0)
    given[0] = 1.0
    assert tuple(quantization.scales) == (0.25, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        quantization.scales.array[0] = 1.0


@pytest.mark.parametrize("count", [1, 2, 256, 257, 5000])
def test_scales_survive_encoding_for_the_cache(count: int) -> None:
    document, buffers = encode(_blocks(count), Records())
    assert decode(memoryview(document), [memoryview(b) for b in buffers], Records()) == _blocks(count)


@pytest.mark.parametrize(
    ("scales", "zeros", "message"),
    [
        ((0.5, float("nan")), (0, 0), "scale is nan"),
        ((0.5, -1.0), (0, 0), "scale is -1.0"),
        ((float("inf"),), (0,), "scale is inf"),
        ((0.5,), (1 << 70,), "more than 64 bits"),
        ((), (), "no scale"),
    ],
)
def test_invalid_scales_are_rejected(scales: tuple[float, ...], zeros: tuple[int, ...], message: str) -> None:
    with pytest.raises(RuleError, match=message):
        Quantization(scales, zeros, 0)
