"""Sequences and optionals whose contents are known only at run time: operands of type VARIANT."""

from __future__ import annotations

from onert.ir import DType, ModelError, TensorType
from onert.ir.analysis.model_inference import join
from onert.ir.ops.control_flow.sequences import SequenceAt, SequenceOf

from .draft import Draft
from .messages import ValueType
from .node import Optional_, RuntimeValue, Sequence_, Value

EMPTY = ValueType("sequence", element=ValueType("tensor"))
"""The type of an empty sequence."""


def tensor_type(type_: TensorType) -> ValueType:
    """A tensor type as an ONNX type."""
    return ValueType("tensor", type_.dtype, type_.shape if type_.ranked else None)


def type_of(d: Draft, value: Value) -> ValueType:
    """The ONNX type of a value, as far as it is known."""
    if isinstance(value, int):
        return tensor_type(d.type(value))
    if isinstance(value, RuntimeValue):
        return value.type
    if isinstance(value, Optional_):
        content = ValueType("tensor") if value.content is None else type_of(d, value.content)
        return ValueType("optional", element=content)
    element = ValueType("tensor", value.element)
    if value.items:
        whole = d.type(value.items[0]).with_data(None)
        for item in value.items[1:]:
            whole = join(whole, d.type(item).with_data(None))
        element = tensor_type(whole)
    return ValueType("sequence", element=element)


def operand_of(d: Draft, value: Value) -> int:
    """A value as one operand: a tensor unchanged, others as VARIANT."""
    if isinstance(value, int):
        return value
    if isinstance(value, RuntimeValue):
        return value.operand
    if isinstance(value, Sequence_):
        return d.add(SequenceOf(), *value.items)
    return d.add(SequenceOf(), *(() if value.content is None else (operand_of(d, value.content),)))


def as_runtime_value(d: Draft, value: Value) -> RuntimeValue:
    """A sequence or optional as one VARIANT operand."""
    return value if isinstance(value, RuntimeValue) else RuntimeValue(operand_of(d, value), type_of(d, value))


def value_of(operand: int, type_: ValueType) -> Value:
    """The value that an operand of an ONNX type represents; a map is represented by a tensor."""
    return operand if type_.kind in ("tensor", "map") else RuntimeValue(operand, type_)


def entry_at(d: Draft, container: RuntimeValue, at: int) -> Value:
    """The entry at a position, which is an operand; an optional's content is its only entry."""
    inner = container.type.element
    if inner is None:
        raise ModelError("the type of its content is unknown")
    if inner.kind != "tensor":
        return RuntimeValue(d.add(SequenceAt(DType.VARIANT), container.operand, at), inner)
    dtype, shape = entry_type(container)
    return d.add(SequenceAt(dtype, shape), container.operand, at)


def entry_type(container: RuntimeValue) -> tuple[DType, tuple[int | None, ...] | None]:
    """The element type and shape of the contained tensors; the shape is None if the rank is unknown."""
    inner = container.type.element
    if inner is None or inner.dtype is None:
        raise ModelError("the element type of its content is unknown")
    shape = None if inner.shape is None else tuple(d if isinstance(d, int) else None for d in inner.shape)
    return inner.dtype, shape


def without_shape(type_: ValueType) -> ValueType:
    element = None if type_.element is None else without_shape(type_.element)
    return ValueType(type_.kind, type_.dtype, None, element)


def entry_rank(type_: ValueType) -> int | None:
    """The rank of a sequence's tensors; None if it is unknown."""
    return None if type_.element is None or type_.element.shape is None else len(type_.element.shape)


def with_rank(type_: ValueType) -> ValueType:
    """A sequence's type, keeping only the element type (None for an empty one) and the rank of its tensors."""
    rank = entry_rank(type_)
    if type_.element is None or rank is None:
        return without_shape(type_)
    return ValueType("sequence", element=ValueType("tensor", type_.element.dtype, (None,) * rank))


def with_entry(type_: ValueType, entry: ValueType) -> ValueType:
    """A sequence's type after adding a tensor; an empty sequence takes the tensor's type."""
    inner = type_.element
    empty = inner is None or inner.dtype is None
    return ValueType("sequence", element=entry if empty or inner is None else join_types(inner, entry))


def join_types(one: ValueType, other: ValueType) -> ValueType:
    """The most specific type that covers both. Raises ModelError if they have nothing in common."""
    if one.kind != other.kind:
        raise ModelError(f"one is a {one.kind}, the other a {other.kind}")
    if one.kind != "tensor":
        if one.element is None or other.element is None:
            return ValueType(one.kind, element=one.element or other.element)
        return ValueType(one.kind, element=join_types(one.element, other.element))
    dtype = one.dtype or other.dtype
    if None not in (one.dtype, other.dtype) and one.dtype is not other.dtype:
        raise ModelError(f"one holds {one.dtype}, the other {other.dtype}")
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return ValueType("tensor", dtype)
    dims = tuple(a if a == b and isinstance(a, int) else None for a, b in zip(one.shape, other.shape, strict=True))
    return ValueType("tensor", dtype, dims)
