"""Audio operations, loaded from a file, equal LiteRT's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import litert_peer as litert
import numpy as np
import pytest
from flatbuffers import flexbuffers

import onert
from onert.ir import Array, CallTypes, DType, Quantization, TensorType, type_of


def _options(fields: Mapping[str, float | bool]) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in fields.items():
            builder.Key(key)
            write = (
                builder.Bool if isinstance(value, bool) else builder.Int if isinstance(value, int) else builder.Float
            )
            write(value)
    return bytes(builder.Finish())


def _check(
    code: str,
    fields: Mapping[str, float | bool],
    inputs: list[Array],
    shape: tuple[int, ...],
    quantization: Quantization | None = None,
) -> None:
    types = [TensorType(type_of(a).dtype, a.shape, quantization if at == 0 else None) for at, a in enumerate(inputs)]
    result = TensorType(DType.FLOAT32, shape)
    model = litert.one_operator(code, _options(fields), CallTypes(tuple(types), (result,)), {})
    (theirs,) = litert.run(model, inputs)
    execution = onert.Execution(onert.compile(onert.load(model), backends=("reference",)))
    (mine,) = execution.run(inputs).values()
    assert mine.shape == theirs.shape
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6 * max(float(np.abs(theirs).max(initial=0)), 1e-3))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    ("samples", "channels", "window", "stride"),
    [(1000, 1, 256, 128), (1000, 2, 250, 100), (100, 1, 256, 1), (513, 3, 2, 3), (64, 1, 64, 7)],
)
def test_spectrograms_equal_litert(samples: int, channels: int, window: int, stride: int, squared: bool) -> None:
    x = np.random.default_rng(samples + window).normal(size=(samples, channels)).astype(np.float32)
    fields = {"window_size": window, "stride": stride, "magnitude_squared": squared}
    _check("AudioSpectrogram", fields, [x], (channels, 0, 1))


BANDS = [(4000, 20, 40, 13), (8000, 125, 64, 20), (7600.7, 20.2, 10, 10), (4000, 20, 80, 1)]


@pytest.mark.parametrize(("bands", "bins", "rate"), list(product(BANDS, (257, 33), (16000, 8000))))
def test_mfccs_equal_litert(bands: tuple[float, float, int, int], bins: int, rate: int) -> None:
    upper, lower, count, coefficients = bands
    x = np.random.default_rng(bins).uniform(0, 10, size=(2, 5, bins)).astype(np.float32)
    fields = {
        "upper_frequency_limit": upper,
        "lower_frequency_limit": lower,
        "filterbank_channel_count": count,
        "dct_coefficient_count": coefficients,
    }
    _check("Mfcc", fields, [x, np.int32([rate])], (2, 5, coefficients))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_numeric_verify_equals_litert(dtype: type[np.int8]) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 100, (4, 5)).astype(dtype)
    zero = 0 if dtype is np.int16 else 3
    reference = (0.1 * (x.astype(np.float32) - zero) + rng.normal(0, 0.01, x.shape)).astype(np.float32)
    fields = {"tolerance": 5.0, "log_if_failed": True}
    _check("NumericVerify", fields, [x, reference], x.shape, Quantization((float(np.float32(0.1)),), (zero,)))
