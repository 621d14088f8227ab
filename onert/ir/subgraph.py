"""Subgraphs: operands, operations, and their definitions and uses."""

from __future__ import annotations

from collections import Counter
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
    """After each run the elements of `source` are assigned to the variable operand `variable`."""

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
        """A graph with these other fields whose operations are `read` on first use.

        None of them may change state or have results that outlast it, so the graph can be run without reading them.
        """
        made = cls(operations=(), **others)
        del made.__dict__["operations"]
        made.__dict__.update(_read=read, notable=())
        return made

    if not TYPE_CHECKING:  # a type checker would otherwise accept every attribute name

        def __getattr__(self, name):
            read = self.__dict__.get("_read") if name == "operations" else None
            if read is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.__dict__.setdefault("operations", read())

    def __getstate__(self) -> dict[str, Any]:
        """The state for copying and pickling, with the operations themselves."""
        state = {**self.__dict__, "operations": self.operations}
        state.pop("_read", None)
        return state

    @cached
    def notable(self) -> tuple[Operation, ...]:
        """Operations that do more than compute results for others: they change state, or their results outlast them."""
        return tuple(each for each in self.operations if each.op.outlasts or each.op.effect is Effect.WRITE)

    @cached
    def definitions(self) -> Mapping[int, int]:
        """The index of the operation that defines each defined operand."""
        return {out: at for at, operation in enumerate(self.operations) for out in operation.outputs}

    @cached
    def uses(self) -> Mapping[int, tuple[int, ...]]:
        """The indices of the operations that use each operand, without duplicates."""
        found: dict[int, list[int]] = {}
        for at, operation in enumerate(self.operations):
            for operand in dict.fromkeys(operation.used):
                found.setdefault(operand, []).append(at)
        return {operand: tuple(users) for operand, users in found.items()}

    @cached
    def repeated(self) -> frozenset[int]:
        """Operands that some operation reads more than once."""
        several = [inputs for inputs in (o.used for o in self.operations) if len(set(inputs)) < len(inputs)]
        return frozenset(i for inputs in several for i, times in Counter(inputs).items() if times > 1)

    @cached
    def kept(self) -> frozenset[int]:
        """Operands that outlive the last operation: outputs, sources of state updates, and `lasting` results."""
        return frozenset((*self.outputs, *(update.source for update in self.state), *self.lasting))

    @cached
    def lasting(self) -> tuple[int, ...]:
        """The results that stay valid until the end of the run (`Op.outlasts`); each has its own memory."""
        return tuple(o for operation in self.notable if operation.op.outlasts for o in operation.outputs)

    def types(self, operation: Operation) -> CallTypes:
        """The types of an operation's operands and results, with the elements of constants."""
        operands = self.operands
        return CallTypes(
            tuple([None if i is None else operands[i].known for i in operation.inputs]),
            tuple([operands[o].type for o in operation.outputs]),
        )

    def type(self, operand: int) -> TensorType:
        return self.operands[operand].type

    def label(self, operand: int) -> str:
        """The name of an operand in messages."""
        return self.operands[operand].label(operand)

    def with_types(self, types: Mapping[int, TensorType]) -> Subgraph:
        """The same graph with the types of some operands replaced."""
        if not types:
            return self
        operands = tuple(evolve(o, type=types[i]) if i in types else o for i, o in enumerate(self.operands))
        return evolve(self, operands=operands)


@frozen
class SignatureTensor(Value):
    """A name for callers, and the operand that it names."""

    name: str
    operand: int


@frozen
class Signature(Value):
    """A named entry point of a model: a subgraph, with names for its inputs and outputs."""

    key: str
    subgraph: int
    inputs: tuple[SignatureTensor, ...]
    outputs: tuple[SignatureTensor, ...]


@frozen
class Subgraphs(Value):
    """A whole model. A run starts in subgraph 0 unless a signature selects another.

    `notes` say what was ignored in the file, and why; they do not affect equality.
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
