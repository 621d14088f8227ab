"""Inputs and outputs of a session, and the metadata of a model."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from onert.frontend.onnx.declarations import Declarations, type_name
from onert.frontend.onnx.element_types import element_number, element_type
from onert.frontend.onnx.messages import Columns, ValueDeclaration, ValueType
from onert.ir import Array, DType
from onert.ir.dtype import address
from onert.ir.process.imports import module
from onert.ir.value import ByIdentity
from onert.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from onert.ir.ops.control_flow.sequences import Items


@frozen(eq=False)
class NodeArg(ByIdentity):
    """An input or output: its name, its type as ONNX Runtime writes it, and its shape.

    A dimension is a number, the name of one that the model leaves open, or None.
    """

    name: str
    type: str
    shape: list[int | str | None]


def node_argument(declared: ValueDeclaration) -> NodeArg:
    type_ = declared.type
    dims = [] if type_ is None or type_.shape is None else list(type_.shape)
    return NodeArg(declared.name, type_name(type_), dims)


class ModelMetadata:
    """The producer of a model, its description, and other metadata."""

    def __init__(self, described: Declarations) -> None:
        self.producer_name = described.producer
        self.graph_name = described.graph
        self.domain = described.domain
        self.description = described.description
        self.graph_description = described.graph_description
        self.version = described.version
        self.custom_metadata_map: Mapping[str, str] = dict(described.metadata)


class OrtValue:
    """A tensor, or a sequence of tensors, that a session reads and writes in place."""

    def __init__(self, content: Any) -> None:
        self._content = content

    @staticmethod
    def ortvalue_from_numpy(array: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value that shares the array's memory: the next run reads later changes of the array."""
        _require_cpu(device_type, device_id)
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array: Array, onnx_element_type: int) -> OrtValue:
        """The array's memory reinterpreted as the ONNX element type with this number, which must be of equal size."""
        kind = numpy_type(onnx_element_type)
        if kind.itemsize != array.dtype.itemsize:
            raise ArgumentError(f"{array.dtype} and {kind} differ in size")
        return OrtValue(array.view(kind))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A zero-filled tensor."""
        _require_cpu(device_type, device_id)
        return OrtValue(np.zeros(tuple(shape), numpy_type(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A value that shares the memory of a tensor that implements DLPack, such as PyTorch's.

        Raises TypeError if it does not implement DLPack, and BufferError if its memory is not the CPU's.
        """
        if not hasattr(data, "__dlpack__"):
            raise TypeError(f"a value is created from a {type(data).__name__}, expected a tensor with __dlpack__")
        return cls(np.from_dlpack(data))

    def __dlpack__(self, **asked: Any) -> Any:
        return self.numpy().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()

    def numpy(self) -> Array:
        """The array itself. Raises ArgumentError if the value is a sequence."""
        if not isinstance(self._content, np.ndarray):
            raise ArgumentError("the value is a sequence, expected a tensor")
        return self._content

    @property
    def content(self) -> Any:
        """The array, or the list of arrays."""
        return self._content

    def update_inplace(self, array: Array) -> None:
        """Copy elements into this tensor. Raises ArgumentError if the shape or type differs."""
        mine = self.numpy()
        if array.shape != mine.shape or array.dtype != mine.dtype:
            raise ArgumentError(
                f"the value is {mine.dtype}{list(mine.shape)} and cannot hold {array.dtype}{list(array.shape)}"
            )
        np.copyto(mine, array)

    def shape(self) -> list[int]:
        return list(self.numpy().shape)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self.numpy())

    def data_type(self) -> str:
        """The type as ONNX Runtime writes it."""
        if self.is_tensor():
            return type_name(ValueType("tensor", DType.from_numpy(self.numpy().dtype)))
        first = self._content[0] if self._content else None
        if isinstance(first, dict):
            key, value = next(iter(first.items()), ("", 0.0))
            return f"seq(map({'string' if isinstance(key, str) else 'int64'},tensor({_NAMED[type(value)]})))"
        return f"seq({'tensor()' if first is None else OrtValue(first).data_type()})"

    def element_type(self) -> int:
        """ONNX's number of the tensor's element type."""
        return element_number(DType.from_numpy(self.numpy().dtype))

    def tensor_size_in_bytes(self) -> int:
        return self.numpy().nbytes

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        return self._content is not None

    def is_tensor(self) -> bool:
        return isinstance(self._content, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._content, list)

    def is_sparse_tensor(self) -> bool:
        return False


_NAMED = {float: "float", int: "int64", str: "string"}


def _require_cpu(device_type: str, device_id: int) -> None:
    if device_type.lower() != "cpu" or device_id:
        raise ArgumentError(f"the device is {device_type} {device_id}, expected cpu 0")


def numpy_type(wanted: Any) -> np.dtype[Any]:
    """The NumPy type of an element type given as NumPy's, or as ONNX's number."""
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        kind: np.dtype[Any] = element_type(wanted).numpy
        return kind
    other: np.dtype[Any] = np.dtype(wanted)
    return other


def memory_at(address: int, shape: Sequence[int], kind: np.dtype[Any]) -> Array:
    """The tensor at an address, whose validity the caller guarantees."""
    count = math.prod(shape)
    if not address or count < 0:
        raise ArgumentError(f"there is no tensor of shape {list(shape)} at address {address}")
    octets = memoryview((ctypes.c_char * (count * kind.itemsize)).from_address(address))
    found: Array = np.frombuffer(octets, kind).reshape(tuple(shape))
    return found


def given(value: Any, type_: ValueType | None, dtype: DType) -> Any:
    """An input as an execution accepts it: strings as bytes, sequences and optionals as one element."""
    if isinstance(value, OrtValue):
        value = value.content
    if type_ is not None and type_.kind != "tensor":
        return _sequences().boxed(_entries(value, type_))
    if dtype is not DType.STRING:
        plain = isinstance(value, list | tuple | int | float)  # ONNX Runtime converts these
        array = np.asarray(value, dtype.numpy if plain else None)
        return array.astype(dtype.numpy) if array.dtype.name in _FEW_BITS else array
    return encoded(np.asarray(value, object) if not isinstance(value, np.ndarray) else value)


def encoded(array: Array) -> Array:
    """Strings as an execution accepts them."""
    found: Array = np.empty(array.size, object)
    given = array.reshape(-1).tolist()
    try:
        found[:] = list(map(str.encode, given))
    except TypeError:  # some are bytes already
        found[:] = [v.encode() if isinstance(v, str) else v for v in given]
    return found.reshape(array.shape)


def row(value: Any, columns: Columns, type_: ValueType) -> Array:
    """The tensor that represents a map, with 0 or "0" for missing keys. Raises ArgumentError if it is not a map."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"a map is given as {type(value).__name__}, expected a dictionary")
    dtype = DType.FLOAT32 if type_.element is None or type_.element.dtype is None else type_.element.dtype
    keys = columns.keys if columns.keys is not None else sorted(value)
    nothing = "0" if dtype is DType.STRING else 0
    return np.asarray(given([[value.get(key, nothing) for key in keys]], type_.element, dtype))


def maps(array: Array, columns: Columns) -> list[dict[Any, Any]]:
    """A dictionary for each row of a tensor that represents maps."""
    keys, rows = columns.keys or range(array.shape[-1]), array.tolist()
    if len(keys) == array.shape[-1] == 2:  # most classifiers have two or three labels: a third of the time
        a, b = keys
        return [{a: x, b: y} for x, y in rows]
    if len(keys) == array.shape[-1] == 3:
        a, b, c = keys
        return [{a: x, b: y, c: z} for x, y, z in rows]
    return [dict(zip(keys, row_, strict=True)) for row_ in rows]


_FEW_BITS = frozenset({"int2", "uint2", "int4", "uint4"})
"""Types of ml_dtypes that onert stores one per byte."""


def _sequences() -> Any:
    """The module of sequences and optionals, imported only for such values."""
    return module("onert.ir.ops.control_flow.sequences")


def _entries(value: Any, type_: ValueType) -> Items:
    items: type[Items] = _sequences().Items
    inner = type_.element or ValueType("tensor")
    if type_.kind == "optional":
        if value is None:
            return items(())
        return items((_entries(value, inner) if inner.kind != "tensor" else given(value, inner, _dtype(inner)),))
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"a sequence is given as {type(value).__name__}, expected a list")
    return items(tuple(np.asarray(given(v, inner, _dtype(inner))) for v in value))


def _dtype(type_: ValueType) -> DType:
    return DType.FLOAT32 if type_.dtype is None else type_.dtype


def taken(array: Array, type_: ValueType | None) -> Any:
    """A result as ONNX Runtime returns it: strings as str, sequences as lists, an empty optional as None."""
    if array.dtype != object:
        return array
    if array.ndim == 0 and isinstance(array[()], _sequences().Items):
        return _unboxed(array[()], type_)
    found = np.empty(array.size, object)
    found[:] = list(map(_Decoded().__getitem__, array.reshape(-1).tolist()))
    return found.reshape(array.shape)


class _Decoded(dict[Any, Any]):
    """Bytes as strings, each converted once: labels are many references to a few strings."""

    def __missing__(self, key: Any) -> Any:
        self[key] = value = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
        return value


def _unboxed(items: Items, type_: ValueType | None) -> Any:
    inner = None if type_ is None else type_.element
    entries = [_unboxed(e, inner) if isinstance(e, type(items)) else taken(np.asarray(e), inner) for e in items.entries]
    if type_ is not None and type_.kind == "optional":
        return entries[0] if entries else None
    return entries
