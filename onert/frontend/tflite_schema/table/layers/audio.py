"""TFLite's custom operators for audio, and the one that verifies a quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onert.frontend.tflite_schema.flexbuffer_options import flexible_map
from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed
from onert.ir import ModelError, Op
from onert.ir.ops.elementwise.numeric_verify import NumericVerify
from onert.ir.ops.reduction.scan import RFFT
from onert.ir.ops.vision_audio.audio import AudioSpectrogram, Mfcc


def _number(options: Mapping[str, Any], key: str) -> float:
    """A number in the custom options; 0 if it is missing, as in FlexBuffers."""
    value = options.get(key, 0)
    if not isinstance(value, int | float) or not abs(value) < 1 << 31:
        raise ModelError(f"the custom option {key} is {value!r}, expected a number")
    return value


def _spectrogram(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    window, stride = int(_number(options, "window_size")), int(_number(options, "stride"))
    return AudioSpectrogram(window, stride, bool(_number(options, "magnitude_squared")))


def _mfcc(operator: Operator) -> Op:
    """MFCC; like TFLite, reads the frequencies as integers."""
    options = flexible_map(operator.custom_options, operator.budget)
    return Mfcc(
        float(int(_number(options, "upper_frequency_limit"))),
        float(int(_number(options, "lower_frequency_limit"))),
        int(_number(options, "filterbank_channel_count")),
        int(_number(options, "dct_coefficient_count")),
    )


def _verify(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    return NumericVerify(float(_number(options, "tolerance")), bool(_number(options, "log_if_failed")))


TABLE: Table = {}
CUSTOM: Table = {
    "AudioSpectrogram": _spectrogram,
    "FlexRFFT": fixed(RFFT()),
    "Mfcc": _mfcc,
    "NumericVerify": _verify,
}
