"""Lowered commands declare the memory they touch: threads run commands at the same time unless these conflict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onert.ir import Subgraph
from onert.ir.symbolic.trace import hint
from onert_llvm.command.command import JUMP, Access, Area, Command, Lowered, Pointer


def within(place: Access, room: Access) -> bool:
    """Whether a range of bytes lies in another."""
    first, begin = hint(place.pointer.offset), hint(room.pointer.offset)
    same = (place.pointer.area, place.pointer.index) == (room.pointer.area, room.pointer.index)
    return same and begin <= first and first + hint(place.nbytes) <= begin + hint(room.nbytes)


def check(lowered: Lowered, subgraph: Subgraph, threads: int) -> None:
    """Assert that commands, which any of `threads` may run, declare all scratch memory and tensors they point to."""
    for commands in (lowered.commands, lowered.sequential):
        _check(
            commands,
            subgraph,
            threads,
            [Access(Pointer(Area.SCRATCH, i), lowered.scratch) for i in range(lowered.teams)],
        )


def _check(commands: Iterable[Command], subgraph: Subgraph, threads: int, rooms: Sequence[Access]) -> None:
    """`rooms` is the scratch memory that the commands may declare."""
    for command in commands:
        scratch = [a for a in command.accesses if a.pointer.area is Area.SCRATCH]
        where = f"{command.spec.name} of operation {command.operation}"
        for access in scratch:
            assert any(within(access, room) for room in rooms), f"{where} declares {access} outside {rooms}"
        if command.program:
            _check(command.program, subgraph, threads, scratch)
        elif command.spec is not JUMP:  # which is never run with another command
            for name, place in _touched(command, subgraph, threads):
                assert any(within(place, access) for access in command.accesses), f"{where}: {name} is {place}"


def _touched(command: Command, subgraph: Subgraph, threads: int) -> Iterable[tuple[str, Access]]:
    """The scratch memory and the computed tensors that slots point to, with as many bytes as is known."""
    for name, slot in command.slots.items():
        if not isinstance(slot, Pointer):
            continue
        if slot.area is Area.SCRATCH or (slot.area is Area.OPERAND and not subgraph.operands[slot.index].is_constant):
            each = command.slots.get("room") if name == "rooms" else None
            yield name, Access(slot, each * threads if isinstance(each, int) else 0, name == "rooms")
