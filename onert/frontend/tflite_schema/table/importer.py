"""What operator tables are written with: the view of an operator in a file, and constructors of importers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs
from attrs import frozen

from onert.frontend.flatbuffer import Table as FileTable
from onert.frontend.tflite_schema.external_models import ExternalModels
from onert.frontend.tflite_schema.schema import Field
from onert.ir import DType, ModelError, Op, TensorType, unranked
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.process.budget import Budget
from onert.ir.value import ByIdentity

Member = TypeVar("Member", bound=Enum)


@frozen(eq=False)
class Operator(ByIdentity):
    """An operator as stored in the file."""

    name: str
    """The builtin's name (`CONV_2D`) or the custom code."""
    version: int
    inputs: tuple[TensorType | None, ...]
    """The operands' types, including the elements of constants; None for an absent operand."""
    outputs: tuple[TensorType, ...]
    custom_options: bytes
    position: int
    """The operator's offset in the file, which is unique."""
    budget: Budget
    """The budget for reading the operator."""
    external: ExternalModels
    """The models in other files that it may run."""
    options: FileTable | None
    fields: Mapping[str, Field]
    """The layout of the options table, by field name in the schema (`stride_w`)."""
    intermediates: tuple[TensorType, ...]
    """The types of tensors that only describe the quantisation of internal values."""

    def _scalar(self, field: str) -> float:
        found = self.fields.get(field)
        if self.options is None or found is None:
            return 0  # like LiteRT, if the options table is missing
        return self.options.scalar(found.slot, found.code, found.default)

    def _vector(self, field: str, code: str) -> Iterable[float]:
        found = self.fields.get(field)
        return () if self.options is None or found is None else self.options.array(found.slot, code)

    def integer(self, field: str) -> int:
        """A field of the options table by its name in the schema (`stride_w`); 0 if the table is missing."""
        return int(self._scalar(field))

    def number(self, field: str) -> float:
        return float(self._scalar(field))

    def flag(self, field: str) -> bool:
        return bool(self._scalar(field))

    def integers(self, field: str) -> tuple[int, ...]:
        """A vector of integers (64-bit for StableHLO's sizes and indices); empty if it is missing."""
        wide = self.name.startswith("STABLEHLO_") and not field.endswith("_subgraph_indices")
        return tuple(map(int, self._vector(field, "q" if wide else "i")))

    def flags(self, field: str) -> tuple[bool, ...]:
        return tuple(map(bool, self._vector(field, "?")))

    def numbers(self, field: str) -> tuple[float, ...]:
        return tuple(map(float, self._vector(field, "f")))

    def text(self, field: str) -> str:
        found = self.fields.get(field)
        return "" if self.options is None or found is None else self.options.text(found.slot)

    def has(self, field: str) -> bool:
        """Whether the file contains this field."""
        found = self.fields.get(field)
        return self.options is not None and found is not None and self.options.has(found.slot)


Importer = Callable[[Operator], Op]
"""Returns the operation whose parameters are the operator's inputs in file order. Raises ModelError or RuleError for
invalid attributes; the caller adds the place."""

Table = Mapping[str, Importer]
"""Importers by builtin name (`CONV_2D`), or by custom code in the table of custom operators."""


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
    """The member of an enumeration field, numbered as in the schema. Raises ModelError for any other number."""
    value = operator.integer(field)
    if not 0 <= value < len(members):
        raise ModelError(f"{field} is {value}, expected 0 to {len(members) - 1}")
    return members[value]


def activation(operator: Operator, field: str = "fused_activation_function") -> Activation:
    """The fused activation function."""
    return choice(operator, field, ACTIVATIONS)


def fixed(op: Op) -> Importer:
    """An importer that ignores the operator's options."""
    return lambda operator: op


_FIELDS = {
    "activation": "fused_activation_function",
    "adjoint_x": "adjoint_lhs",
    "adjoint_y": "adjoint_rhs",
    "asymmetric_inputs": "asymmetric_quantize_inputs",
    "body": "body_subgraph_index",
    **{f"stride_{side}": f"stride_{side[0]}" for side in ("depth", "height", "width")},
    **{f"dilation_{side}": f"dilation_{side[0]}_factor" for side in ("depth", "height", "width")},
}
"""Fields whose name in the schema differs from the operation's."""
_BY_TYPE: Mapping[object, Callable[[Operator, str], Any]] = {
    "int": Operator.integer,
    "float": Operator.number,
    "bool": Operator.flag,
    "str": Operator.text,
    "tuple[int, ...]": Operator.integers,
    "tuple[float, ...]": Operator.numbers,
    "Activation": activation,
    "Padding | Margins": lambda operator, field: choice(operator, field, PADDINGS),
}
"""The reader of an attribute, by its declared type."""


def read(kind: type[Op], /, *given: object, **otherwise: str | Callable[[Operator], Any]) -> Importer:
    """An importer that reads the attributes not in `given`, each from the field of the same name.

    `otherwise` has the names of other fields, and functions for attributes that are not stored in a field. An attribute
    whose type no field has keeps its default.
    """
    types = {each.name: each.type for each in attrs.fields(kind)[len(given) :]}
    sources = {name: _FIELDS.get(name, name) for name, type_ in types.items() if type_ in _BY_TYPE} | otherwise
    readers = {name: _reader(types[name], source) for name, source in sources.items()}
    return lambda operator: kind(*given, **{name: reader(operator) for name, reader in readers.items()})


def _reader(type_: object, source: str | Callable[[Operator], Any]) -> Callable[[Operator], Any]:
    if not isinstance(source, str):
        return source
    read_field = _BY_TYPE[type_]
    return lambda operator: read_field(operator, source)


def result_dtype(operator: Operator) -> DType:
    """The element type declared in the file for the result."""
    if not operator.outputs:
        raise ModelError("has no outputs, expected 1")
    return operator.outputs[0].dtype


def other_result(operator: Operator) -> DType | None:
    """The result's declared element type if it differs from the first input's; None otherwise."""
    x = operator.inputs[0] if operator.inputs else None
    if x is None or not operator.outputs or operator.outputs[0].dtype is x.dtype:
        return None
    return operator.outputs[0].dtype


def index_type(operator: Operator, field: str) -> DType:
    """The integer type in a field that holds a TensorType."""
    value = operator.integer(field)
    if value not in _INDEX_TYPES:
        raise ModelError(f"{field} is {value}, expected 2 (int32) or 4 (int64)")
    return _INDEX_TYPES[value]


def unranked_results(operator: Operator) -> tuple[TensorType, ...]:
    """Result types with only the element types: a subgraph may return other shapes than the file declares."""
    return tuple(unranked(t.dtype) for t in operator.outputs)
