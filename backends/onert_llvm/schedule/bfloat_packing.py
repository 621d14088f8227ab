"""Weights rounded to bfloat16 or float16, packed in pairs along k."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.target.isa import Isa

from .float_packing import PackWinograd, pack_f32, panels_f32

LARGEST_HALF = np.uint32(0x477FEFFF).view(np.float32)
"""The largest float32 whose nearest float16 is finite."""

LARGEST = np.uint32(0x7F7F7FFF).view(np.float32)
"""The largest float32 whose nearest bfloat16 is finite."""


_FIRST = 1 << 8


def pairs(weights: Array) -> Array:
    """Finite float32 `weights[..., k, n]` as `[..., ceil(k / 2), n]`: each 32-bit element holds two neighbours along k,
    rounded to the nearest bfloat16 (ties to even), the first in the low half.
    """
    words = np.ascontiguousarray(weights, np.float32).view(np.uint32)
    found = words[..., 0::2, :] + (((words[..., 0::2, :] >> 16) & 1) + np.uint32(0x7FFF))
    found >>= 16
    second = words[..., 1::2, :]
    found[..., : second.shape[-2], :] |= (second + (((second >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    out: Array = found.view(np.float32)
    return out


def pack_bfloat(weights: Array, columns: Columns, isa: Isa) -> Array:
    """Panels of the pairs of `weights[taps, k, n]`: `[taps, ceil(k / 2), width]`."""
    return pack_f32(pairs(weights), columns, isa)


def half_pairs(weights: Array) -> Array:
    """The same for float16."""
    words = weights.astype(np.float16).view(np.uint16).astype(np.uint32)
    found, second = words[..., 0::2, :].copy(), words[..., 1::2, :]
    found[..., : second.shape[-2], :] |= second << 16
    out: Array = found.view(np.float32)
    return out


def pack_half(weights: Array, columns: Columns, isa: Isa) -> Array:
    """Panels of the float16 pairs of `weights[taps, k, n]`: `[taps, ceil(k / 2), width]`."""
    return pack_f32(half_pairs(weights), columns, isa)


@frozen
class PackBfloatWinograd(Value):
    """Filters `[n, 3, 3, channels]`, with an even number of channels, transformed for a form and then rounded: panels
    of `[places, channels / 2, width]` pairs.
    """

    form: Form

    def __call__(self, filters: Array, columns: Columns, isa: Isa) -> Array:
        n, _, _, channels = filters.shape
        points, pack = self.form.across, PackWinograd(self.form)
        packed, parts = panels_f32(points**2 * channels // 2, n, columns, isa)
        for first, part in parts:
            width = part.shape[1]
            found = np.empty((points, points, channels, width), np.float32)
            pack.transform(filters, first, found)
            part[:] = pairs(found).reshape(-1, width)
        return packed


def roundable(weights: Array, largest: np.float32 = LARGEST) -> bool:
    """Whether all weights stay finite when rounded to bfloat16, or to the type with another `largest` number."""
    return bool(weights.min(initial=0) >= -largest and weights.max(initial=0) <= largest)  # False if any is NaN


def are_bfloat(weights: Array) -> bool:
    """Whether all weights are bfloat16 numbers."""
    return _are(weights, lambda some: not (some.view(np.uint32) & 0xFFFF).any())


def are_half(weights: Array) -> bool:
    """Whether all weights are float16 numbers; also False if any is NaN."""
    with np.errstate(over="ignore"):
        return _are(weights, lambda some: np.array_equal(some.astype(np.float16).astype(np.float32), some))


def _are(weights: Array, test: Callable[[Array], bool]) -> bool:
    """Whether all parts of an array pass a test; most arrays that fail do so in the first, short one."""
    flat = np.ascontiguousarray(weights.T if weights.flags.f_contiguous else weights).reshape(-1)
    return all(test(flat[start : start + (start or _FIRST)]) for start in _starts(flat.size))


def _starts(size: int) -> Iterator[int]:
    """The starts of parts that double in length."""
    start = 0
    while start < size:
        yield start
        start = 2 * start or _FIRST
