"""Element types in flow files, and the elements of constants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from onert.ir import Array, Constant, DType, ModelError, TensorType
from onert.ir import shape as shapes

from .file import Variable, described

DTYPES: Mapping[str, DType] = {
    "int": DType.INT32,
    "uint": DType.UINT32,
    "half": DType.FLOAT16,
    "float": DType.FLOAT32,
    "double": DType.FLOAT64,
    **{
        name: DType[name.upper()]
        for name in (
            *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("bool", "float16", "float32", "float64", "bfloat16", "string", "resource"),
        )
    },
}
"""Element types by their names in files. `void` and the empty name mean no type."""


def type_of(variable: Variable) -> TensorType:
    """The type of a variable; -1 becomes an unknown dimension. Raises ModelError if its element type is unknown."""
    dtype = DTYPES.get(variable.element_type)
    if dtype is None:
        expected = ", ".join(sorted(DTYPES))
        raise ModelError(f"{place(variable)}: the type is '{variable.type}', expected one of {expected}")
    if len(variable.shape) > shapes.MAX_RANK:
        raise ModelError(f"{place(variable)}: rank {len(variable.shape)} is more than {shapes.MAX_RANK}")
    shape = tuple(None if size == -1 else size for size in variable.shape)
    total = 1
    for size in variable.shape:
        total *= max(size, 1)
    if total > shapes.MAX_ELEMENTS:
        raise ModelError(
            f"{place(variable)}: shape {list(variable.shape)} has more than {shapes.MAX_ELEMENTS} elements"
        )
    return TensorType(dtype, shape)


def constant_of(variable: Variable) -> tuple[TensorType, Constant | None, str]:
    """The type of a variable that no operation computes, its elements if it is constant, and a note or an empty string.

    Surplus data is cut off, as in Myelin, and noted. Raises ModelError if there is too little.
    """
    type_ = type_of(variable)
    nbytes = len(variable.data)
    if type_.dtype.is_handle:
        if nbytes:
            raise ModelError(f"{place(variable)}: {nbytes} bytes of data cannot be elements of type {variable.type}")
        return type_, None, ""
    if not nbytes:
        return type_, _no_elements(type_), ""
    if not type_.is_static:
        raise ModelError(f"{place(variable)}: a constant has shape {list(variable.shape)}, expected known dimensions")
    if nbytes < type_.nbytes:
        raise ModelError(f"{place(variable)}: {type_} has {nbytes} bytes of data, expected {type_.nbytes}")
    cut = nbytes - type_.nbytes
    note = f"the last {cut} bytes of the data of variable '{variable.name}' are ignored: {type_} needs {type_.nbytes}"
    return type_, Constant(partial(_elements, variable, type_)), note if cut else ""


def _no_elements(type_: TensorType) -> Constant | None:
    """A tensor without elements is constant even without data."""
    if 0 not in type_.shape or not type_.is_static:
        return None
    return Constant(np.zeros(shapes.static(type_.shape), type_.dtype.numpy))


def _elements(variable: Variable, type_: TensorType) -> Array:
    """A copy of the data as an array; its address in the file may be unaligned, but kernels need it aligned."""
    shape, dtype = shapes.static(type_.shape), type_.dtype.numpy
    raw = np.frombuffer(variable.data, np.uint8, type_.nbytes).copy()
    return (raw != 0).reshape(shape) if type_.dtype is DType.BOOL else raw.view(dtype.newbyteorder("<")).reshape(shape)


def place(variable: Variable) -> str:
    """The name of a variable in errors."""
    return described(variable.offset, f"variable '{variable.name}'")
