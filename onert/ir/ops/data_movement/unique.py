"""The distinct slices of a tensor."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType


@frozen
class UniqueSlices(Op):
    """The distinct slices of `x` along an axis, or its distinct elements if `axis` is None.

    - `x`: numbers, booleans or strings

    Results: the slices, `sorted` or in order of first occurrence; then int64 vectors: the index of each one's first
    occurrence, for each slice of x its index among the distinct ones, and their counts. Source: ONNX Unique.
    """

    finds: ClassVar[bool] = True

    axis: int | None = None
    sorted: bool = True

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType, TensorType, TensorType]:
        ordered = x.dtype.is_numeric and not x.dtype.is_complex
        require(ordered or x.dtype in (DType.BOOL, DType.STRING), f"x is {x}, expected elements that can be ordered")
        if x.value is not None:
            found = self.evaluate(x.value)
            kinds = (x.dtype, *(DType.INT64,) * 3)
            one, two, three, four = (TensorType(kind, f.shape) for kind, f in zip(kinds, found, strict=True))
            return one, two, three, four
        if self.axis is None:
            count, first = shapes.num_elements(x.shape), x.result((None,))
        else:
            at = shapes.normalize_axis(self.axis, x.rank)
            count, first = x.shape[at], x.result((*x.shape[:at], None, *x.shape[at + 1 :]))
        some, every = TensorType(DType.INT64, (None,)), TensorType(DType.INT64, (count,))
        return first, some, every, some

    def rounds(self, types: CallTypes) -> int:
        return shapes.num_elements(types.outputs[2].shape) or 0

    def evaluate(self, x: Array) -> tuple[Array, Array, Array, Array]:
        axis = 0 if self.axis is None else shapes.normalize_axis(self.axis, x.ndim)
        slices = x.reshape(-1) if self.axis is None else x
        rows = np.moveaxis(slices, axis, 0)
        keys = rows.reshape(len(rows), math.prod(rows.shape[1:]))
        plain = keys.dtype.kind in "biu" or (keys.dtype.kind == "f" and not np.isnan(keys).any())
        chosen, inverse, counts = self._elements(keys[:, 0]) if plain and keys.shape[1] == 1 else self._rows(keys)
        return np.ascontiguousarray(np.moveaxis(rows[chosen], 0, axis)), chosen, inverse, counts

    def _elements(self, x: Array) -> tuple[Array, Array, Array]:
        """The results but for the first, of elements none of which is NaN: each NaN would be distinct."""
        _, chosen, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        if not self.sorted:
            order = np.argsort(chosen)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            chosen, inverse, counts = chosen[order], rank[inverse], counts[order]
        return chosen.astype(np.int64), inverse.reshape(-1).astype(np.int64), counts.astype(np.int64)

    def _rows(self, keys: Array) -> tuple[Array, Array, Array]:
        """The results but for the first, of any slices."""
        places: dict[tuple[object, ...], int] = {}
        firsts: list[int] = []
        inverse = np.empty(len(keys), np.int64)
        for at, row in enumerate(keys.tolist()):
            key = tuple(row)
            if key not in places:
                places[key] = len(firsts)
                firsts.append(at)
            inverse[at] = places[key]
        order = list(range(len(firsts)))
        if self.sorted:
            order.sort(key=lambda each: keys[firsts[each]].tolist())
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        chosen = np.array(firsts, np.int64)[order] if firsts else np.zeros(0, np.int64)
        counts = np.bincount(inverse, minlength=len(firsts)).astype(np.int64)[order] if firsts else chosen
        return chosen, rank[inverse] if firsts else inverse, counts
