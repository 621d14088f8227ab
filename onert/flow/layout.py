"""Where the tensors of a cell lie in the memory of its instances."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from onert.backend import HOST, Program
from onert.ir import CompileError, TensorType


@frozen
class Field:
    """A tensor in the memory of an instance: its operand in the program, and from which byte on it lies.

    `root` is the operand whose memory it shares, itself mostly.
    """

    name: str
    operand: int
    type: TensorType
    offset: int
    root: int


@frozen(eq=False)
class Layout:
    """The memory of an instance: inputs and outputs, then the arena of what is computed between them.

    `fields` has them by the names of variables, in the order of their offsets; what a kernel never stores has none.
    """

    fields: Mapping[str, Field]
    arena: int
    size: int


def layout(program: Program, shared: frozenset[str]) -> Layout:
    """The layout for a program; its inputs that are `shared` lie elsewhere. CompileError for sizes that only a run
    tells.
    """
    graph = program.main.subgraph
    found: list[Field] = []
    offset = 0
    for operand in (*graph.inputs, *graph.outputs):
        described = graph.operands[operand]
        if not described.type.is_static or described.type.dtype.is_handle:
            raise CompileError(f"'{described.name}' is {described.type}, expected numbers of a known shape in a cell")
        if described.name in shared and operand in graph.inputs:
            continue
        found.append(Field(described.name, operand, described.type, offset, operand))
        offset += described.type.nbytes + -described.type.nbytes % HOST.alignment
    arena = program.main.arenas.get(HOST.name)
    placements = () if arena is None else sorted(arena.placements.items(), key=lambda item: (item[1].offset, item[0]))
    for operand, place in placements:
        described = graph.operands[operand]
        found.append(Field(described.name, operand, described.type, offset + place.offset, place.root))
    return Layout({field.name: field for field in found if field.name}, offset, offset + program.arena_bytes)
