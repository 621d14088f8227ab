"""The copies of resource variables that a sequence works on, and when they are taken and given back.

Where the names of all variables are known, and each has one type, it is taken once before all commands and given back
once after them. Otherwise two handles may name one variable: then it is taken right before every operation that reads
it, and given back right after every one that assigns to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import evolve

from onert.ir import Subgraph
from onert.ir.ops.control_flow.state import VarHandle
from onert.ir.shape import static
from onert_llvm.command.command import Transfer, Variables

_ALIGNMENT = 64


class Copies:
    """Collects what a sequence does with variables; `handles` are those that it makes, by operand."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self.handles: list[tuple[int, Hashable]] = []
        self._transfers: list[Transfer] = []
        self._places: dict[Hashable, int] = {}
        self._nbytes = 0

    def place(self, handle: int, elements: int) -> int:
        """The offset of the copy of a variable with the type of an operand: one for each variable and type."""
        type_ = self._subgraph.type(elements)
        variable = self._key(handle)
        key = (handle if variable is None else variable, type_.shape, type_.dtype)
        if key not in self._places:
            self._places[key] = self._nbytes
            self._nbytes += -(-type_.nbytes // _ALIGNMENT) * _ALIGNMENT
        return self._places[key]

    def transfer(self, position: int, operation: int, handle: int, elements: int, store: bool) -> None:
        """Take a variable with the type of an operand before command `position`, or give it back then."""
        type_ = self._subgraph.type(elements)
        self._transfers.append(
            Transfer(
                position,
                operation,
                str(self._subgraph.operations[operation]),
                handle,
                self._key(handle),
                self.place(handle, elements),
                static(type_.shape),
                type_.dtype.numpy,
                store,
            )
        )

    def done(self, commands: int) -> Variables:
        """All of it, for a sequence of so many commands."""
        transfers = self._transfers
        types = {t.key: t.place for t in transfers}
        if all(t.key is not None and types[t.key] == t.place for t in transfers):
            transfers = _once(transfers, commands)
        return Variables(tuple(self.handles), tuple(transfers), self._nbytes)

    def _key(self, handle: int) -> Hashable | None:
        """The variable of a handle that this subgraph makes."""
        at = self._subgraph.definitions.get(handle)
        op = None if at is None else self._subgraph.operations[at].op
        return key_of(op) if isinstance(op, VarHandle) else None


def key_of(op: VarHandle) -> Hashable:
    """What a handle holds."""
    key: Hashable = op.evaluate().item()
    return key


def _once(transfers: Sequence[Transfer], commands: int) -> list[Transfer]:
    """The first use of each variable where that is to read it, and the last that assigns to it."""
    first: dict[Hashable, Transfer] = {}
    last: dict[Hashable, Transfer] = {}
    for transfer in transfers:
        first.setdefault(transfer.key, transfer)
        if transfer.store:
            last[transfer.key] = transfer
    loads = [evolve(t, position=0) for t in first.values() if not t.store]
    return loads + [evolve(t, position=commands) for t in last.values()]
