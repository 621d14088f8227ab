"""Tables of keys and values that are constant."""

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
"""Keys that lie so close together have a table with a place for each number: places for each key."""


def why_not(op: LookUp, types: CallTypes) -> str | None:
    """Why this backend does not look the keys up; None if it does."""
    x, *table = (types.input(i) for i in range(4))
    if x.dtype not in KINDS or 0 in x.shape:
        return "x is of no type that loops know, or has no elements"
    if any(part.value is None for part in table):
        return "the table is not constant"
    if types.output.dtype is DType.STRING or types.output.dtype.numpy.itemsize not in SIZES:
        return "values are neither of 1, 2, 4 nor of 8 bytes"
    return "there are no keys" if 0 in table[0].shape else None


@frozen(eq=False)
class _Table:
    """Keys in order, each once, and their values."""

    keys: Array
    values: Array


def _table(keys: Array, values: Array) -> _Table:
    """Of equal keys the last counts. Floats become their bits, as `FindKeys` has them."""
    if keys.dtype.kind == "f":
        keys = np.where(np.isnan(keys), np.array(np.nan, keys.dtype), keys + 0).astype(keys.dtype)
        keys = keys.view(f"i{keys.itemsize}")
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    last = np.append(keys[1:] != keys[:-1], [True])
    return _Table(keys[last], values[order][last])


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A place for each number where they lie close together, else halves of keys in order."""
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
