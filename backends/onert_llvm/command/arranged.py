"""Lists of commands, changed before they run: what is prefetched, and which commands are idle for some lengths."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.ir.symbolic.trace import where_greater

from .command import JUMP, Area, Command, Pointer, Slot


def looking_ahead(commands: Sequence[Command]) -> tuple[Command, ...]:
    """The commands; those with a slot `ahead` get a pointer to the next product's constant matrix, to prefetch it."""
    found: list[Command] = []
    following: Slot | None = None
    for command in reversed(commands):
        own = command.slots.get("b")
        if "ahead" in command.spec.layout.names:
            assert own is not None
            command = evolve(command, slots={**command.slots, "ahead": following or own})
        if isinstance(own, Pointer) and own.area is Area.CONSTANT:
            following = own
        found.append(command)
    return tuple(reversed(found))


def may_be_idle(commands: Sequence[Command]) -> bool:
    """Whether all commands can be left out for some lengths; jumps count commands."""
    return not any(command.program or command.spec == JUMP for command in commands)


def idle_unless(when: int, command: Command, threads: int) -> Command:
    """The command without work for these threads unless `when`, a symbolic number, is 1. Only several threads divide it
    into pieces."""
    tiles = where_greater(when, 0, command.tiles, 0)
    return evolve(command, tiles=tiles, pieces=where_greater(when, 0, command.pieces, 0) if threads > 1 else 1)
