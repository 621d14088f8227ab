"""Merges equal independent commands into one, so that threads do not wait for one another between them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.ir.symbolic.trace import hint, minimum

from .command import MERGED, Area, Command, short_pieces


def merge(commands: Sequence[Command], threads: int) -> Command | None:
    """One command for independent commands that differ only in the values of their slots and write no scratch memory
    except the `rooms` that each thread has of its own; None otherwise.
    """
    first, *others = commands
    own = {first.slots.get("rooms")}
    kept = any(a.write and a.pointer.area is Area.SCRATCH and a.pointer not in own for a in first.accesses)
    if kept or not others or any((c.spec, c.tiles, c.program) != (first.spec, first.tiles, ()) for c in commands):
        return None
    count = len(commands)
    tiles, flops = count * first.tiles, sum(c.flops for c in commands)
    accesses = tuple(dict.fromkeys(a for c in commands for a in c.accesses))
    steps = tuple(evolve(c, pieces=count) for c in commands)
    pieces = minimum(tiles, short_pieces(threads, hint(flops)))
    return Command(MERGED, {}, tiles, pieces, accesses, first.operation, flops, steps, first.threads)
