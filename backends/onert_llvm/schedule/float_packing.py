"""Packed weights of floats: panels for products, built with NumPy from the layouts of models."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value
from onert_llvm.kernels.contraction.register_tile import Columns
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.runtime.aligned_memory import zeros
from onert_llvm.target.isa import Isa


def pack_f32(weights: Array, columns: Columns, isa: Isa) -> Array:
    """Panels of `weights[taps, k, n]` (or `[k, n]`) in float32.

    A panel is `[taps, k, width]`. The tail is packed to its own width, which may end inside its last register: that
    register reads on into the next row, in lanes that are never stored, and zeros follow the last row. The same holds
    for a partial last panel if `columns` are padded.
    """
    n = weights.shape[-1]
    w = np.asarray(weights, np.float32).reshape(-1, n)
    packed, parts = panels_f32(len(w), n, columns, isa)
    for first, part in parts:
        part[:] = w[:, first : first + part.shape[1]]
    return packed


def panels_f32(rows: int, n: int, columns: Columns, isa: Isa) -> tuple[Array, list[tuple[int, Array]]]:
    """Memory for packed weights and views of its panels: each one's first column and its elements `[rows, columns]`."""
    width, tail = columns.vectors * isa.f32, (columns.vectors if columns.padded else columns.tail) * isa.f32
    full = n // width if width else 0
    rest = n - full * width
    packed = zeros(rows * n + (tail - rest if rest else 0), np.float32)
    split = full * width * rows
    parts = list(enumerate(packed[:split].reshape(full, rows, width))) if full else []
    found = [(number * width, part) for number, part in parts]
    if rest:
        found.append((full * width, packed[split : rows * n].reshape(rows, rest)))
    return packed, found


@frozen
class PackWinograd(Value):
    """Filters `[n, *window, channels]` transformed for a form, packed like `weights[places, parts * channels, n]`."""

    form: Form

    def __call__(self, filters: Array, columns: Columns, isa: Isa) -> Array:
        n, _, _, channels = filters.shape
        stored, terms = self.form.weight_tile, prod(self.form.parts) * channels
        packed, parts = panels_f32(prod(stored) * terms, n, columns, isa)
        for first, part in parts:
            self.transform(filters, first, part.reshape(*stored, terms, part.shape[1]))
        return packed

    def transform(self, filters: Array, first: int, out: Array) -> None:
        """Write the transform of the filters from number `first` into `out[*stored, parts * channels, count]`."""
        points, _, terms, width = out.shape
        form, some = self.form, filters[first : first + width].transpose(1, 2, 3, 0)
        (high, wide), count = form.part, prod(form.parts)
        window = np.zeros((high, wide, count, *some.shape[2:]), np.float32)
        for part, i, j in np.ndindex(count, high, wide):
            y, x = (first + at * apart for first, at, apart in zip(form.first(part), (i, j), form.apart, strict=True))
            if y < form.window[0] and x < form.window[1]:
                window[i, j, part] = some[y, x]
        window = window.reshape(high, wide, terms, width)
        if form.axis == 1:
            rows = window
        else:
            rows = np.empty((points, wide, terms, width), np.float32) if form.axis is None else out
            self._along(window, rows)
        if form.axis != 0:
            self._along(rows.swapaxes(0, 1), out.swapaxes(0, 1))
        if form.keeps_zeros:
            _keep_middle_zeros(window[1, 1] == 0, rows, out)

    def _along(self, window: Array, out: Array) -> None:
        """The transform along the first axis. A pair of points of opposite signs shares its even terms."""
        weights = self.form.weight_transform
        if self.form.axis is None and self.form.stride == 2:
            for own, factors in zip(out, weights, strict=True):
                some = [part for part, factor in zip(window, factors, strict=True) if factor]
                np.add(some[0], some[1], out=own) if len(some) > 1 else np.copyto(own, some[0])
            return
        np.multiply(window[0], np.float32(weights[0][0]), out=out[0])
        out[-1] = window[-1]
        odd, more = np.empty(window[0].shape, np.float32), np.empty(window[0].shape, np.float32)
        for i in range(1, self.form.points - 1, 2):
            for total, first in ((out[i], 0), (odd, 1)):
                np.multiply(window[first], np.float32(weights[i][first]), out=total)
                for part, factor in zip(window[first + 2 :: 2], weights[i][first + 2 :: 2], strict=True):
                    total += np.multiply(part, np.float32(factor), out=more)
            np.subtract(out[i], odd, out=out[i + 1])
            out[i] += odd


def _keep_middle_zeros(zero: Array, rows: Array, out: Array) -> None:
    """Adjust the transform `out` of `rows` so that a zero in the middle of a window is reproduced exactly.

    The operands of the four sums in the middle are rounded to multiples of a unit, by at most an ulp of the largest, so
    that neither these sums nor their differences are rounded.
    """
    if not zero.any():
        return
    outer, inner = (rows[1:3, 0][:, zero] + rows[1:3, 2][:, zero]) / 2, rows[1, 1][zero] / 2
    _, exponent = np.frexp(np.maximum(np.abs(outer).max(0), np.abs(inner)))
    unit = np.ldexp(np.float32(1), np.maximum(exponent - 23, -149))
    outer, inner = np.rint(outer / unit) * unit, np.rint(inner / unit) * unit
    out[1:3, 1][:, zero], out[1:3, 2][:, zero] = outer + inner, outer - inner


def panel_bytes_f32(taps: int, depth: int, columns: Columns, isa: Isa) -> int:
    """The bytes from one panel of `[taps, depth]` rows to the next."""
    return taps * depth * (columns.vectors or columns.tail) * isa.f32 * 4


def panels(n: int, columns: Columns, isa: Isa) -> int:
    """The number of panels for `n` columns."""
    width = columns.widest * isa.f32
    return -(-n // width)
