"""Statistics of the elements of constants: range, histogram and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.ir import Array, Constant, Operand, RuleError, dequantize

from .pools import quantization

BINS = 32
EXACT = 1 << 50
"""Below this, float64 can represent the half-way points between integers."""
SAMPLE = 1 << 16
"""The most elements that are examined; larger constants are sampled at regular intervals."""
SHOWN = 16
"""Constants of at most this many elements are listed."""


def constants(found: Sequence[tuple[Constant, Operand]], *, read: bool = True) -> list[dict[str, Any]]:
    """Each constant's type, bytes and quantisation, with statistics of its elements if they are numbers.

    Reading packed or sparse elements allocates memory; they are only read if `read` is set.
    """
    return [_told(constant.array, operand) if read else _declared(operand) for constant, operand in found]


def _declared(operand: Operand) -> dict[str, Any]:
    """What is known about a constant without reading its elements."""
    type_ = operand.type
    nbytes = type_.nbytes if type_.is_static else 0
    return {
        "name": operand.name,
        "type": str(type_),
        "elements": nbytes // max(type_.dtype.itemsize, 1),
        "bytes": nbytes,
        "quantization": quantization(type_.quantization),
        "first": [],
    }


def _told(stored: Array, operand: Operand) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": operand.name,
        "type": str(operand.type),
        "elements": int(stored.size),
        "bytes": int(operand.type.nbytes) if operand.type.is_static else int(stored.nbytes),
        "quantization": quantization(operand.type.quantization),
        "first": [_word(v) for v in stored.reshape(-1)[:SHOWN].tolist()] if stored.size <= SHOWN else [],
    }
    if stored.dtype.kind in "OSU" or operand.type.dtype.is_complex or not stored.size:
        return told
    return told | _numbers(_sampled(stored), stored, operand)


def _word(value: object) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else f"{value}"
    return text if len(text) <= 40 else f"{text[:40]}..."


def _sampled(stored: Array) -> Array:
    """The elements, or a regular sample of at most SAMPLE of them."""
    return stored.reshape(-1)[:: max(1, -(-stored.size // SAMPLE))]


def _numbers(sample: Array, stored: Array, operand: Operand) -> dict[str, Any]:
    """Statistics of the stored numbers, and the range of the real numbers if the quantisation is per tensor."""
    numbers = sample.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    told: dict[str, Any] = {
        "sampled": int(sample.size) if sample.size < stored.size else None,
        "not_finite": int(numbers.size - finite.size),
        "zeros": float(np.mean(numbers == 0)),
    }
    if not finite.size:
        return told
    low, high = float(finite.min()), float(finite.max())
    whole = stored.dtype.kind in "iub" and high - low < BINS and max(abs(low), abs(high)) < EXACT
    bins = int(high - low) + 1 if whole else BINS
    narrow = 1e-6 * max(abs(low), abs(high), 1e-30)  # widen a span that is too small to divide into bins
    edges = (low - 0.5, high + 0.5) if whole else (low, high) if high - low > narrow else (low - narrow, high + narrow)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(edges[1] - edges[0]):
            return told | {"low": low, "high": high}
        places = np.minimum((finite - edges[0]) / (edges[1] - edges[0]) * bins, bins - 1).astype(np.int64)
        counts = np.bincount(places, minlength=bins)
        told |= {"mean": float(finite.mean()), "deviation": float(finite.std())}
    q = operand.type.quantization
    real: dict[str, float] = {}
    if q is not None:
        try:
            values = dequantize(np.asarray([[low], [high]]), q) if q.per_tensor else None
        except RuleError:
            values = None
        if values is not None:
            real = {"real_low": float(values.min()), "real_high": float(values.max())}
    histogram = {"from": edges[0], "to": edges[1], "counts": counts.tolist()}
    told |= {"low": low, "high": high, "histogram": histogram, **real}
    return {key: value for key, value in told.items() if not isinstance(value, float) or np.isfinite(value)}
