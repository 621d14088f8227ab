"""How a line of an operator table says what an operator of a flatbuffer model becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Protocol, TypeVar

from onert.ir import DType, ModelError, Op, TensorType, unranked
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.process.budget import Budget

Member = TypeVar("Member", bound=Enum)


class Operator(Protocol):
    """An operator as the file has it."""

    @property
    def name(self) -> str:
        """The builtin's name (`CONV_2D`) or the custom code."""

    @property
    def version(self) -> int: ...

    @property
    def inputs(self) -> tuple[TensorType | None, ...]:
        """The operands' types, constants' elements known; None for an absent one."""

    @property
    def outputs(self) -> tuple[TensorType, ...]: ...

    @property
    def intermediates(self) -> tuple[TensorType, ...]:
        """The types of tensors that tell only how values inside of the operator are quantised."""

    @property
    def custom_options(self) -> bytes: ...

    @property
    def position(self) -> int:
        """Where in the file the operator stands: a number that no other operator of the file has."""

    @property
    def budget(self) -> Budget:
        """What reading the operator draws on."""

    def integer(self, field: str) -> int:
        """A field of the options table by its name in the schema (`stride_w`); 0 where it or the table is missing."""

    def number(self, field: str) -> float:
        """A floating-point field; 0.0 where it or the table is missing."""

    def flag(self, field: str) -> bool: ...

    def integers(self, field: str) -> tuple[int, ...]:
        """A vector of integers; empty where it or the table is missing."""

    def flags(self, field: str) -> tuple[bool, ...]:
        """A vector of booleans; empty where it or the table is missing."""

    def numbers(self, field: str) -> tuple[float, ...]:
        """A vector of floating-point numbers; empty where it or the table is missing."""

    def text(self, field: str) -> str: ...

    def model(self, location: str, signature: str) -> int:
        """The subgraph that runs the model in a file beside this one; ModelError if there is none."""

    def has(self, field: str) -> bool:
        """Whether the file writes this field."""


Importer = Callable[[Operator], Op]
"""Gives the operation whose parameters are the operator's inputs, in the file's order. ModelError or RuleError for
attributes that break a rule; the caller adds the place."""

Table = Mapping[str, Importer]
"""Importers by builtin name (`CONV_2D`); in the table of custom operators by custom code."""


ACTIVATIONS = (
    Activation.NONE,
    Activation.RELU,
    Activation.RELU_N1_TO_1,
    Activation.RELU6,
    Activation.TANH,
    Activation.SIGN_BIT,
)
PADDINGS = (Padding.SAME, Padding.VALID)
_INDEX_TYPES = {2: DType.INT32, 4: DType.INT64}


def choice(operator: Operator, field: str, members: tuple[Member, ...]) -> Member:
    """The member that an enumeration field stands for, numbered as in the schema; ModelError for any other number."""
    value = operator.integer(field)
    if not 0 <= value < len(members):
        raise ModelError(f"{field} is {value}, expected 0 to {len(members) - 1}")
    return members[value]


def activation(operator: Operator) -> Activation:
    """The fused activation function."""
    return choice(operator, "fused_activation_function", ACTIVATIONS)


def same_or_valid(operator: Operator) -> Padding:
    return choice(operator, "padding", PADDINGS)


def dilation(operator: Operator, field: str) -> int:
    """1 is the schema's default."""
    return operator.integer(field) if operator.has(field) else 1


def fixed(op: Op) -> Importer:
    """An importer that reads nothing: the operator has no options that matter."""

    def build(operator: Operator) -> Op:
        return op

    return build


def fused(kind: Callable[..., Op], **attributes: Any) -> Importer:
    """An importer that reads only the fused activation."""

    def build(operator: Operator) -> Op:
        return kind(activation=activation(operator), **attributes)

    return build


def result_dtype(operator: Operator) -> DType:
    """The element type that the file declares for the result."""
    if not operator.outputs:
        raise ModelError("has no outputs, expected 1")
    return operator.outputs[0].dtype


def result_other_than(operator: Operator, index: int) -> DType | None:
    """The result's declared element type where it is not that of input `index`."""
    x = operator.inputs[index] if index < len(operator.inputs) else None
    if x is None or not operator.outputs or operator.outputs[0].dtype is x.dtype:
        return None
    return operator.outputs[0].dtype


def index_type(operator: Operator, field: str) -> DType:
    """The integer type that a field of the schema's TensorType names."""
    value = operator.integer(field)
    if value not in _INDEX_TYPES:
        raise ModelError(f"{field} is {value}, expected 2 (int32) or 4 (int64)")
    return _INDEX_TYPES[value]


def loose(operator: Operator) -> tuple[TensorType, ...]:
    """Results of which only the element types are sure: a subgraph may give other shapes than the file says."""
    return tuple(unranked(t.dtype) for t in operator.outputs)
