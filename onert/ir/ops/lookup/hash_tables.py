"""Hash tables: mappings from strings to integers or back, filled once per execution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Effect, Op, require
from onert.ir.ops.data_movement.reshape import require_one
from onert.ir.types import CallTypes, TensorType

_PAIRS = ((DType.INT64, DType.STRING), (DType.STRING, DType.INT64))


@frozen
class HashTable(Op):
    """The handle of the hash table with the number `table`, as a resource of shape [1].

    `key` and `value` are INT64 and STRING, or STRING and INT64.
    """

    table: int
    key: DType = DType.INT64
    value: DType = DType.STRING

    def infer(self) -> TensorType:
        require(
            (self.key, self.value) in _PAIRS,
            f"a table maps {self.key.text} to {self.value.text}, expected i64 to str or str to i64",
        )
        return TensorType(DType.RESOURCE, (1,))

    def evaluate(self) -> Array:
        out = np.empty(1, object)
        out[0] = ("hash table", self.table, self.key.text, self.value.text)
        return out


def _require_handle(table: TensorType) -> None:
    require(table.dtype is DType.RESOURCE, f"the table is {table.dtype.text}, expected a handle")
    count = shapes.num_elements(table.shape)
    require(count in (1, None), f"there are {count} handles, expected 1")


def _require_pair(keys: TensorType, values: TensorType) -> None:
    require(
        (keys.dtype, values.dtype) in _PAIRS,
        f"keys are {keys.dtype.text} and values {values.dtype.text}, expected i64 and str or str and i64",
    )


def _key(table: Array) -> tuple[Any, ...]:
    """The key of the table's content in an execution's state. Raises RuleError if the handle is not a hash table's."""
    found = table.reshape(-1)[0]
    right = isinstance(found, tuple) and len(found) == 4 and found[0] == "hash table"
    require(right, f"the handle is one of {found!r}, expected a hash table")
    return tuple(found)


def _require_kinds(key: tuple[Any, ...], keys: TensorType, values: TensorType) -> None:
    require(
        key[2:] == (keys.dtype.text, values.dtype.text),
        f"the table maps {key[2]} to {key[3]}, but is used from {keys.dtype.text} to {values.dtype.text}",
    )


@frozen
class HashTableImport(Op):
    """Fills a hash table, unless it was already filled in this execution.

    - `table`: the handle
    - `keys`, `values`: of equal number; of equal keys the last one is used
    """

    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, table: TensorType, keys: TensorType, values: TensorType) -> tuple[TensorType, ...]:
        _require_handle(table)
        _require_pair(keys, values)
        counts = [shapes.num_elements(x.shape) for x in (keys, values)]
        require(None in counts or counts[0] == counts[1], f"there are {counts[0]} keys and {counts[1]} values")
        return ()

    def evaluate_in(
        self, context: Context, types: CallTypes, table: Array, keys: Array, values: Array
    ) -> tuple[Array, ...]:
        key = _key(table)
        _require_kinds(key, types.input(1), types.input(2))
        if key not in context.state:
            context.state[key] = dict(zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True))
        return ()


@frozen
class HashTableFind(Op):
    """Looks up the values of keys; `default` for a key that is not in the table.

    - `table`: the handle. Raises RuleError if the table was not filled yet.
    - `keys`: any shape, which is the result's
    - `default`: one element
    """

    effect: ClassVar[Effect] = Effect.READ

    def infer(self, table: TensorType, keys: TensorType, default: TensorType) -> TensorType:
        _require_handle(table)
        _require_pair(keys, default)
        require_one(default, "default_value")
        return default.result(keys.shape)

    def evaluate_in(self, context: Context, types: CallTypes, table: Array, keys: Array, default: Array) -> Array:
        key = _key(table)
        _require_kinds(key, types.input(1), types.input(2))
        require(key in context.state, f"hash table {key[1]} is read before it was filled")
        content, missing = context.state[key], default.reshape(-1)[0]
        out = np.empty(keys.size, default.dtype)
        out[:] = [content.get(k, missing) for k in keys.reshape(-1).tolist()]
        return out.reshape(keys.shape)


@frozen
class HashTableSize(Op):
    """The number of keys in a table; int64 [1].

    - `table`: the handle. Raises RuleError if the table was not filled yet.
    """

    effect: ClassVar[Effect] = Effect.READ

    def infer(self, table: TensorType) -> TensorType:
        _require_handle(table)
        return TensorType(DType.INT64, (1,))

    def evaluate_in(self, context: Context, types: CallTypes, table: Array) -> Array:
        key = _key(table)
        require(key in context.state, f"hash table {key[1]} is read before it was filled")
        return np.array([len(context.state[key])], np.int64)
