"""Subgraphs: operands, operations, and who defines and uses what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from attrs import define, evolve, field, frozen

from onert.ir.process.cached import cached

from .op import Effect
from .operand import Operand
from .operation import Operation
from .types import CallTypes, TensorType
from .value import Value


@frozen
class StateUpdate(Value):
    """After each run the elements of `source` become those of the variable operand `variable`."""

    variable: int
    source: int


@define(frozen=True, slots=False)  # slots would leave no room for the cached properties
class Subgraph(Value):
    """A graph of operations, in an order in which every operand is defined before it is used."""

    operands: tuple[Operand, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""
    state: tuple[StateUpdate, ...] = field(default=())

    @classmethod
    def later(cls, read: Callable[[], tuple[Operation, ...]], **others: Any) -> Self:
        """A graph of these other fields whose operations are `read` when somebody asks for them.

        None of them is `lasting` or changes state, so that it can be run without them.
        """
        made = cls(operations=(), **others)
        del made.__dict__["operations"]
        made.__dict__.update(_read=read, notable=())
        return made

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name):
            read = self.__dict__.get("_read") if name == "operations" else None
            if read is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.__dict__.setdefault("operations", read())

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: the operations themselves."""
        state = {**self.__dict__, "operations": self.operations}
        state.pop("_read", None)
        return state

    @cached
    def notable(self) -> tuple[Operation, ...]:
        """The operations that do more than give results to others: they change state, or their results outlast them."""
        return tuple(each for each in self.operations if each.op.outlasts or each.op.effect is Effect.WRITE)

    @cached
    def definitions(self) -> Mapping[int, int]:
        """The operation that defines each defined operand."""
        return {out: at for at, operation in enumerate(self.operations) for out in operation.outputs}

    @cached
    def uses(self) -> Mapping[int, tuple[int, ...]]:
        """The operations that use each operand, each once."""
        found: dict[int, list[int]] = {}
        for at, operation in enumerate(self.operations):
            for operand in dict.fromkeys(operation.used):
                found.setdefault(operand, []).append(at)
        return {operand: tuple(users) for operand, users in found.items()}

    @cached
    def kept(self) -> frozenset[int]:
        """Operands that outlive the last operation: outputs, what updates state, and what undoing an update takes."""
        return frozenset((*self.outputs, *(update.source for update in self.state), *self.lasting))

    @cached
    def lasting(self) -> tuple[int, ...]:
        """The results of operations that say so (`Op.outlasts`): each has memory of its own."""
        return tuple(o for operation in self.notable if operation.op.outlasts for o in operation.outputs)

    def types(self, operation: Operation) -> CallTypes:
        """The types of an operation's operands and results, constants' elements known."""
        operands = self.operands
        return CallTypes(
            tuple([None if i is None else operands[i].known for i in operation.inputs]),
            tuple([operands[o].type for o in operation.outputs]),
        )

    def type(self, operand: int) -> TensorType:
        return self.operands[operand].type

    def label(self, operand: int) -> str:
        """What messages call an operand."""
        name = self.operands[operand].name
        return f"tensor {operand} '{name}'" if name else f"tensor {operand}"

    def with_types(self, types: Mapping[int, TensorType]) -> Subgraph:
        """The same graph with other types for some operands."""
        if not types:
            return self
        operands = tuple(evolve(o, type=types[i]) if i in types else o for i, o in enumerate(self.operands))
        return evolve(self, operands=operands)


@frozen
class SignatureTensor(Value):
    """A name that callers use, and the operand it stands for."""

    name: str
    operand: int


@frozen
class Signature(Value):
    """A named way into a model: a subgraph with names for its inputs and outputs."""

    key: str
    subgraph: int
    inputs: tuple[SignatureTensor, ...]
    outputs: tuple[SignatureTensor, ...]


@frozen
class Subgraphs(Value):
    """A whole model; subgraph 0 is where a run starts unless a signature says otherwise.

    `notes` say what in the file was ignored, and why; they take no part in equality.
    """

    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...] = ()
    description: str = ""
    notes: tuple[str, ...] = field(default=(), eq=False)

    @property
    def primary(self) -> Subgraph:
        return self.subgraphs[0]

    def __getitem__(self, index: int) -> Subgraph:
        return self.subgraphs[index]

    def __len__(self) -> int:
        return len(self.subgraphs)
