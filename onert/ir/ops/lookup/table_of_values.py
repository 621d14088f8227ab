"""Elements mapped by a lookup table."""

from __future__ import annotations

from itertools import repeat

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
        flat = x.reshape(-1)
        elements = flat.tolist()
        if str in set(map(type, elements)):
            elements = list(map(_key, elements))
        places = {_key(key): at for at, key in enumerate(keys.tolist())}
        found = np.fromiter(map(places.get, elements, repeat(len(keys))), np.intp, len(elements))
        if elements and isinstance(elements[0], float):
            found[flat != flat] = places.get("nan", len(keys))
        out: Array = np.concatenate([values, other.reshape(-1)[:1]])[found]
        return out.reshape(x.shape)


def _key(element: object) -> object:
    if isinstance(element, str):
        return element.encode()
    return "nan" if isinstance(element, float) and element != element else element
