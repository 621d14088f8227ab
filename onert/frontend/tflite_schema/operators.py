"""Reads the operators of a flatbuffer model as operations."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.frontend.flatbuffer import LETTERS, Data, Table
from onert.frontend.tflite_schema.table.builtins import BUILTINS
from onert.frontend.tflite_schema.table.importer import Importer, Operator
from onert.ir import ModelError, Op, Operand, TensorType
from onert.ir.ops.custom import Python, Unsupported
from onert.ir.types import unranked
from onert.ir.value import Value

from .custom_ops import CUSTOM_OPS
from .external_models import ExternalModels
from .schema import Field, layout, names, slot
from .table import CUSTOM, TABLE

_CUSTOM_CODE = 32
_PLACEHOLDER = 127


@frozen
class Code(Value):
    """An entry of the model's operator code table: a builtin's name or a custom code, and the version."""

    name: str
    custom: bool
    version: int


def read_codes(model: Table) -> tuple[Code, ...]:
    """The operator codes. Raises ModelError for a number that is not a builtin operator."""
    found = []
    builtins = names("BuiltinOperator")
    for index, table in enumerate(model.tables(slot("Model", "operator_codes"))):
        old = int(table.scalar(slot("OperatorCode", "deprecated_builtin_code"), "b", 0))
        new = int(table.scalar(slot("OperatorCode", "builtin_code"), "i", 0))
        version = int(table.scalar(slot("OperatorCode", "version"), "i", 1))
        # Files older than the 128th operator have only the old field; circle's own operators are negative.
        number = min(old, new) if min(old, new) < 0 else max(old, new)
        if number == _CUSTOM_CODE:
            found.append(Code(table.text(slot("OperatorCode", "custom_code")), True, version))
        elif number in builtins and number != _PLACEHOLDER:
            found.append(Code(builtins[number], False, version))
        else:
            raise ModelError(f"operator code {index} is {number}, which is not an operator of the schema")
    return tuple(found)


def read_operator(
    table: Table,
    code: Code,
    operands: Sequence[Operand],
    ends: tuple[Sequence[int], Sequence[int]],
    content: Data,
    external: ExternalModels,
) -> Op:
    """The operation for an operator whose input and output tensors are `ends`.

    Raises ModelError for an unsupported version or another operator's options. An operator without an implementation
    becomes `Unsupported`.
    """
    operator = Operator(
        code.name,
        code.version,
        tuple(None if i < 0 else operands[i].known for i in ends[0]),
        tuple(_declared(operands[o]) for o in ends[1]),
        _custom_options(table, content),
        table.position,
        table.budget,
        external,
        *_options(table, code),
        _intermediates(table, operands),
    )
    if code.custom and code.name in CUSTOM_OPS:
        results = tuple(_or_unranked(result) for result in operator.outputs)
        return Python(code.name, CUSTOM_OPS[code.name], operator.custom_options, results)
    importer: Importer | None = (CUSTOM if code.custom else TABLE).get(code.name)
    if importer is None:
        return Unsupported(code.name, tuple(_or_unranked(result) for result in operator.outputs))
    return importer(operator)


def _or_unranked(result: TensorType) -> TensorType:
    """The type of a custom operator's result, which converters declare a scalar if they do not know its shape."""
    return result if result.rank else unranked(result.dtype, result.quantization)


def _declared(operand: Operand) -> TensorType:
    """The type that the file declares for a result, with the dimensions that it leaves open unknown."""
    return operand.type if operand.signature_shape is None else operand.type.with_shape(operand.signature_shape)


def _intermediates(table: Table, operands: Sequence[Operand]) -> tuple[TensorType, ...]:
    """The types of the operator's `intermediates` tensors. Raises ModelError if one does not exist."""
    found: list[int] = table.array(slot("Operator", "intermediates"), "i").tolist()
    for i in found:
        if not 0 <= i < len(operands):
            raise ModelError(f"intermediates name tensor {i}, expected 0 to {len(operands) - 1}")
    return tuple(operands[i].type for i in found)


def _options(table: Table, code: Code) -> tuple[Table | None, dict[str, Field]]:
    """The options table and the layout of its fields. Raises ModelError if the options belong to another operator."""
    if code.custom:
        return None, {}
    builtin = BUILTINS[code.name]
    if builtin.max_version is not None and code.version > builtin.max_version:
        raise ModelError(f"version {code.version} is newer than {builtin.max_version}, the newest supported one")
    for union, kind_slot, table_slot in (
        ("BuiltinOptions", "builtin_options_type", "builtin_options"),
        ("BuiltinOptions2", "builtin_options2_type", "builtin_options2"),
    ):
        kind = int(table.scalar(slot("Operator", kind_slot), "B", 0))
        if kind == 0:
            continue
        found = names(union).get(kind)
        options = table.table(slot("Operator", table_slot))
        if found is None:
            raise ModelError(f"options are of kind {kind}, which {union} does not have")
        if found != builtin.options:
            if not builtin.options:
                continue  # ignored by an operator without options
            raise ModelError(f"options are {found}, expected {builtin.options}")
        return options, dict(layout(found))
    return None, {}


def _custom_options(table: Table, content: Data) -> bytes:
    """A custom operator's options as bytes, stored in the operator or after the flatbuffer."""
    offset = int(table.scalar(slot("Operator", "large_custom_options_offset"), "Q", 0))
    if offset > 1:
        size = int(table.scalar(slot("Operator", "large_custom_options_size"), "Q", 0))
        if offset + size > len(content):
            raise ModelError(f"custom options lie at {offset}, {size} bytes, outside of the file's {len(content)}")
        table.budget.spend(size // LETTERS, "reading its custom options")
        return bytes(content[offset : offset + size])
    return table.octets(slot("Operator", "custom_options"))
