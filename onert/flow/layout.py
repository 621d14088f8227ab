"""The placement of a cell's tensors in the memory of its instances."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from onert.backend import HOST, Program
from onert.ir import Array, CompileError, TensorType


@frozen
class Field:
    """A tensor in the memory of an instance: its operand in the program, and its offset in bytes.

    `root` is the operand whose memory it shares, usually itself. If it is `column_major`, its operand's dimensions are
    reversed.
    """

    name: str
    operand: int
    type: TensorType
    offset: int
    root: int
    column_major: bool = False

    def array(self, memory: Array) -> Array:
        """The elements, in the memory of an instance."""
        return in_order(HOST.view(memory, self.offset, turned(self.type, self.column_major)), self.column_major)


def turned(type_: TensorType, column_major: bool) -> TensorType:
    """The type of a tensor's operand for a memory order, and vice versa."""
    return type_.plain(shape=type_.shape[::-1]) if column_major else type_


def in_order(array: Array, column_major: bool) -> Array:
    """The elements of a tensor from those of its operand, and vice versa."""
    return array.T if column_major else array


@frozen(eq=False)
class Layout:
    """The memory of an instance: inputs and outputs, then the arena of intermediate results.

    `fields` are in the order of their offsets, by the names of variables; a tensor that no kernel stores has none.
    """

    fields: Mapping[str, Field]
    arena: int
    size: int


def layout(
    program: Program, shared: frozenset[str], in_place: frozenset[int], columns: frozenset[str] = frozenset()
) -> Layout:
    """The layout for a program. Inputs that are `shared` and outputs that are `in_place` are stored elsewhere. Inputs
    and outputs among `columns` are column-major.

    Raises CompileError for sizes that are only known at run time.
    """
    graph = program.main.subgraph
    found: list[Field] = []
    offset = 0
    ends = (*zip(graph.inputs, program.inputs, strict=True), *zip(graph.outputs, program.outputs, strict=True))
    for at, (operand, described) in enumerate(ends):
        type_ = described.type
        if not type_.is_static or type_.dtype.is_handle:
            raise CompileError(f"'{described.name}' is {type_}, expected numbers of a known shape in a cell")
        if (described.name in shared and at < len(graph.inputs)) or operand in in_place:
            continue
        column_major = described.name in columns
        type_ = turned(graph.type(operand), column_major)
        found.append(Field(described.name, operand, type_, offset, operand, column_major))
        offset += type_.nbytes + -type_.nbytes % HOST.alignment
    arena = program.main.arenas.get(HOST.name)
    placements = () if arena is None else sorted(arena.placements.items(), key=lambda item: (item[1].offset, item[0]))
    for operand, place in placements:
        local = graph.operands[operand]
        found.append(Field(local.name, operand, local.type, offset + place.offset, place.root))
    fields: dict[str, Field] = {}
    for field in found:
        if field.name:
            fields.setdefault(field.name, field)
    return Layout(fields, offset, offset + program.arena_bytes)
