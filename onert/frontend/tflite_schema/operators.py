"""Operators of a flatbuffer model as operations."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from onert.frontend.flatbuffer import LETTERS, Data, Table
from onert.frontend.tflite_schema.table.builtins import BUILTINS
from onert.frontend.tflite_schema.table.importer import Importer
from onert.ir import ModelError, Op, Operand, TensorType
from onert.ir.ops.custom import Python, Unsupported
from onert.ir.process.budget import Budget
from onert.ir.value import Told, Value

from .custom_ops import CUSTOM_OPS
from .external_models import Neighbors
from .schema import Field, layout, names, slot
from .table import CUSTOM, TABLE

_RENAMED = {"adj_x": "adjoint_lhs", "adj_y": "adjoint_rhs"}
"""Fields that circle's schema calls otherwise than TFLite's."""
_CUSTOM_CODE = 32
_PLACEHOLDER = 127


@frozen
class Code(Value):
    """An entry of the model's table of operator codes: a builtin's name or a custom code, and the version."""

    name: str
    custom: bool
    version: int


def read_codes(model: Table) -> tuple[Code, ...]:
    """The operator codes; ModelError for a number that no builtin has."""
    found = []
    builtins = names("BuiltinOperator")
    for index, table in enumerate(model.tables(slot("Model", "operator_codes"))):
        old = int(table.scalar(slot("OperatorCode", "deprecated_builtin_code"), "b", 0))
        new = int(table.scalar(slot("OperatorCode", "builtin_code"), "i", 0))
        version = int(table.scalar(slot("OperatorCode", "version"), "i", 1))
        # Files from before there were more than 127 operators carry only the old field; circle's own are negative.
        number = min(old, new) if min(old, new) < 0 else max(old, new)
        if number == _CUSTOM_CODE:
            found.append(Code(table.text(slot("OperatorCode", "custom_code")), True, version))
        elif number in builtins and number != _PLACEHOLDER:
            found.append(Code(builtins[number], False, version))
        else:
            raise ModelError(f"operator code {index} is {number}, which no operator has")
    return tuple(found)


@frozen(eq=False)
class FileOperator(Told):
    """One operator as importers see it (`importer.Operator`)."""

    name: str
    version: int
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]
    custom_options: bytes
    position: int
    budget: Budget
    beside: Neighbors
    options: Table | None
    fields: dict[str, Field] = field(factory=dict)
    intermediates: tuple[TensorType, ...] = ()

    def _field(self, name: str) -> Field | None:
        return self.fields.get(name) or self.fields.get(_RENAMED.get(name, name))

    def _scalar(self, name: str) -> float:
        found = self._field(name)
        if self.options is None or found is None:
            return 0  # LiteRT reads an operator without its options table as all zeros
        return self.options.scalar(found.slot, found.code, found.default)

    def integer(self, field: str) -> int:
        return int(self._scalar(field))

    def number(self, field: str) -> float:
        return float(self._scalar(field))

    def flag(self, field: str) -> bool:
        return bool(self._scalar(field))

    def integers(self, field: str) -> tuple[int, ...]:
        found = self._field(field)
        if self.options is None or found is None:
            return ()
        wide = field in _WIDE_VECTORS
        return tuple(int(x) for x in self.options.array(found.slot, "q" if wide else "i"))

    def flags(self, field: str) -> tuple[bool, ...]:
        found = self._field(field)
        return () if self.options is None or found is None else tuple(map(bool, self.options.array(found.slot, "?")))

    def numbers(self, field: str) -> tuple[float, ...]:
        found = self._field(field)
        return () if self.options is None or found is None else tuple(map(float, self.options.array(found.slot, "f")))

    def text(self, field: str) -> str:
        found = self._field(field)
        return "" if self.options is None or found is None else self.options.text(found.slot)

    def model(self, location: str, signature: str) -> int:
        return self.beside.entry(location, signature)

    def has(self, field: str) -> bool:
        found = self._field(field)
        return self.options is not None and found is not None and self.options.has(found.slot)


_WIDE_VECTORS = frozenset(
    {
        "broadcast_dimensions",
        "start_indices",
        "limit_indices",
        "strides",
        "dimensions",
        "slice_sizes",
        "edge_padding_low",
        "edge_padding_high",
        "interior_padding",
        "window_dimensions",
        "window_strides",
        "base_dilations",
        "window_dilations",
        "padding",
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "permutation",
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
        "lhs_dilation",
        "rhs_dilation",
        "input_spatial_dimensions",
        "kernel_spatial_dimensions",
        "output_spatial_dimensions",
    }
)
"""Vectors of 64-bit integers: all of StableHLO's; the others are of 32 bits."""


def read_operator(
    table: Table,
    code: Code,
    operands: Sequence[Operand],
    ends: tuple[Sequence[int], Sequence[int]],
    behind: Data,
    beside: Neighbors,
) -> Op:
    """The operation of an operator whose input and output tensors are `ends`.

    ModelError for a version that is not understood, or options of another operator. An operator that nothing implements
    becomes `Unsupported`.
    """
    operator = FileOperator(
        code.name,
        code.version,
        tuple(None if i < 0 else operands[i].known for i in ends[0]),
        tuple(_declared(operands[o]) for o in ends[1]),
        _custom_options(table, behind),
        table.position,
        table.budget,
        beside,
        *_options(table, code),
        _intermediates(table, operands),
    )
    if code.custom and code.name in CUSTOM_OPS:
        return Python(code.name, CUSTOM_OPS[code.name], operator.custom_options, operator.outputs)
    importer: Importer | None = (CUSTOM if code.custom else TABLE).get(code.name)
    if importer is None:
        return Unsupported(code.name, operator.outputs)
    return importer(operator)


def _declared(operand: Operand) -> TensorType:
    """The type that the file gives a result, unknown in the dimensions that it leaves open."""
    return operand.type if operand.signature_shape is None else operand.type.with_shape(operand.signature_shape)


def _intermediates(table: Table, operands: Sequence[Operand]) -> tuple[TensorType, ...]:
    """The types of the tensors that the operator names beside its ends; ModelError for one that is not there."""
    found = tuple(int(i) for i in table.array(slot("Operator", "intermediates"), "i"))
    for i in found:
        if not 0 <= i < len(operands):
            raise ModelError(f"intermediates name tensor {i}, expected 0 to {len(operands) - 1}")
    return tuple(operands[i].type for i in found)


def _options(table: Table, code: Code) -> tuple[Table | None, dict[str, Field]]:
    """The options table and the layout of its fields; ModelError if the file has another operator's."""
    if code.custom:
        return None, {}
    builtin = BUILTINS[code.name]
    if builtin.max_version is not None and code.version > builtin.max_version:
        raise ModelError(f"version {code.version} is newer than {builtin.max_version}, the newest that is understood")
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
                continue  # an operator without options does not look at any
            raise ModelError(f"options are {found}, expected {builtin.options}")
        return options, dict(layout(found))
    return None, {}


def _custom_options(table: Table, behind: Data) -> bytes:
    """The bytes of a custom operator's options, in the operator or behind the flatbuffer."""
    offset = int(table.scalar(slot("Operator", "large_custom_options_offset"), "Q", 0))
    if offset > 1:
        size = int(table.scalar(slot("Operator", "large_custom_options_size"), "Q", 0))
        if offset + size > len(behind):
            raise ModelError(f"custom options lie at {offset}, {size} bytes, outside of the file's {len(behind)}")
        table.budget.spend(size // LETTERS, "reading its custom options")
        return bytes(behind[offset : offset + size])
    return table.octets(slot("Operator", "custom_options"))
