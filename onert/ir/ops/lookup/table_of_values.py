"""Elements mapped by a lookup table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType


@frozen
class LookUp(Op):
    """Replaces each element by the value of the key that equals it; of equal keys the last is used.

    - `x`: numbers, booleans or strings
    - `keys`, `values`: of rank 1 and equal length; keys have x's type
    - `other`: one element of the values' type, for elements that equal no key

    NaN equals NaN. Source: ONNX-ML's LabelEncoder.
    """

    def infer(self, x: TensorType, keys: TensorType, values: TensorType, other: TensorType) -> TensorType:
        known = x.dtype.is_numeric or x.dtype in (DType.STRING, DType.BOOL)
        require(known and keys.dtype is x.dtype, f"x is {x}, the keys are {keys}, expected one type")
        fits = keys.rank == 1 and values.rank == 1 and shapes.compatible(keys.shape, values.shape)
        require(fits, f"the keys are {keys}, the values {values}, expected vectors of one length")
        one = other.dtype is values.dtype and shapes.num_elements(other.shape) in (1, None)
        require(one, f"the other value is {other}, expected one {values.dtype.text}")
        return values.result(x.shape)

    def rounds(self, types: CallTypes) -> int:
        return (shapes.num_elements(types.input(0).shape) or 0) // 8

    def evaluate(self, x: Array, keys: Array, values: Array, other: Array) -> Array:
        return _table(keys, values, other)(x)

    def prepare(
        self, x: Array | None, keys: Array | None, values: Array | None, other: Array | None
    ) -> Callable[[Array], Array] | None:
        if x is not None or keys is None or values is None or other is None:
            return None
        return _table(keys, values, other)


def _table(keys: Array, values: Array, other: Array) -> Callable[[Array], Array]:
    found = _Table(zip(map(_key, keys.tolist()), values.tolist(), strict=True))
    found.otherwise = other.reshape(-1).tolist()[0]
    if keys.dtype.hasobject:  # elements may be texts, too
        found |= {key.decode(): value for key, value in found.items() if isinstance(key, bytes) and _is_text(key)}
    of_nan = found[_NAN]

    def evaluate(x: Array) -> Array:
        results = map(found.__getitem__, x.reshape(-1).tolist())
        if values.dtype.hasobject:
            out: Array = np.array(list(results), object)
        else:
            out = np.fromiter(results, values.dtype, x.size)
        if x.dtype.kind == "f":
            flat = x.reshape(-1)
            out[flat != flat] = of_nan
        return out.reshape(x.shape)

    return evaluate


class _Table(dict[Any, Any]):
    """Values by key, and a value for all other keys."""

    otherwise: Any = None

    def __missing__(self, key: object) -> Any:
        return self.otherwise


_NAN = "nan"


def _key(element: object) -> object:
    if isinstance(element, str):
        return element.encode()
    return _NAN if isinstance(element, float) and element != element else element


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
