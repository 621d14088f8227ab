"""Lookups in constant tables of keys and values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.lookup.table_of_values import LookUp
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.lookup.keys import SIZES, FindKeys
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS

_MOST_HOLES = 4
"""Integer keys get a table indexed by the number itself if it has fewer places per key than this."""


def why_not(op: LookUp, types: CallTypes) -> str | None:
    """Why this backend does not look up the keys; None if it does."""
    x, *table = (types.input(i) for i in range(4))
    if x.dtype not in KINDS or 0 in x.shape:
        return "x has an unsupported element type, or no elements"
    if any(part.value is None for part in table):
        return "the table is not constant"
    if types.output.dtype is DType.STRING or types.output.dtype.numpy.itemsize not in SIZES:
        return "its values do not have 1, 2, 4 or 8 bytes"
    return "there are no keys" if 0 in table[0].shape else None


@frozen(eq=False)
class _Table:
    """Distinct keys in order, and their values."""

    keys: Array
    values: Array


def _table(keys: Array, values: Array) -> _Table:
    """A table in which the last of equal keys counts. Floats become their bits, as in `FindKeys`."""
    if keys.dtype.kind == "f":
        keys = np.where(np.isnan(keys), np.array(np.nan, keys.dtype), keys + 0).astype(keys.dtype)
        keys = keys.view(f"i{keys.itemsize}")
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    last = np.append(keys[1:] != keys[:-1], [True])
    return _Table(keys[last], values[order][last])


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """An indexed table if keys are dense integers, else a binary search in sorted keys."""
    at, operation, _ = lowering.single(operations, LookUp)
    x, keys, values, other = operation.used
    kind, rest = KINDS[lowering.type(x).dtype], lowering.elements(other).reshape(-1)[:1]
    table = _table(lowering.elements(keys), lowering.elements(values))
    low, high, count = int(table.keys[0]), int(table.keys[-1]), len(table.keys)
    numbered = not kind.is_float and high - low < _MOST_HOLES * count and -(1 << 63) <= low < 1 << 63
    slots: dict[str, Slot]
    if numbered:
        found = np.repeat(rest, high - low + 1)
        found[(table.keys - table.keys[0]).astype(np.int64)] = table.values
        slots = {"low": low}
    else:
        levels = (count - 1).bit_length()
        whole = np.append(np.arange(count), np.full((1 << levels) - count, count - 1))
        found = table.values[whole]
        nan = np.array(np.nan, np.float64 if kind is Kind.F64 else np.float32)
        slots = {
            "keys": lowering.constant(table.keys[whole]),
            "levels": levels,
            "nan": int(nan.view(f"i{nan.itemsize}")),
        }
    slots |= {"values": lowering.constant(np.append(found, rest)), "count": len(found)}
    elements = math.prod(lowering.shape(x))
    algorithm = FindKeys(kind, found.itemsize, numbered)
    lowering.run(at, algorithm, elements, {"x": x}, {"out": operation.outputs[0]}, slots, elements)
