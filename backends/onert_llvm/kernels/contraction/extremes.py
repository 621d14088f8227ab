"""The minimum and maximum of floats and 0, found while they are in registers, with one instruction each.

Float bits are compared as integers: among negative numbers the greatest unsigned bits are the minimum, and the greatest
signed bits are the maximum. NaN compares beyond infinity.
"""

from __future__ import annotations

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, Var

PAIRS, PARTS, TILES = SLOTS = ("extremes", "extremes_parts", "extremes_tiles")
"""Slots: a pair of extremes for each part of a command, the number of parts, and that of work tiles, maybe fewer."""


@frozen(eq=False)
class Extremes:
    """The extremes of the elements seen so far, per lane: the greatest bits as unsigned and as signed integers."""

    below: Var
    above: Var

    def see(self, x: Val, mask: Val | None = None) -> None:
        """Include a register; with a mask, only lanes under it."""
        bits = x.bits(self.below.get().type)
        bits = bits if mask is None else mask.select(bits, bits.like(0))
        self.join(bits, bits)

    def join(self, below: Val, above: Val) -> None:
        """Include extremes found elsewhere."""
        self.below.set(self.below.get().call("umax", below))
        self.above.set(self.above.get().call("smax", above))

    def over_lanes(self) -> tuple[Val, Val]:
        """The extremes of all lanes."""
        below = self.below.get().over_lanes(lambda a, b: a.call("umax", b))
        return below, self.above.get().over_lanes(lambda a, b: a.call("smax", b))

    def write(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        """Store the extremes of work tiles `begin` to `end` for the parts that begin among them."""
        tiles, parts = task.i64(TILES), task.i64(PARTS)
        first, last = ((at * parts + (tiles - 1)) // tiles for at in (begin, end))
        out, found = task.view(PAIRS, I32, 2, 1), self.over_lanes()
        with k.loop(last, first) as part:
            for i, value in enumerate(found):
                out[part, i].store(value)


def extremes(k: Kernel, lanes: int) -> Extremes:
    """The extremes of no elements: 0."""
    return Extremes(*(k.var(k.zeros(I32, lanes)) for _ in range(2)))


def least_and_greatest(k: Kernel, below: Val, above: Val) -> tuple[Val, Val]:
    """The numbers with these bits; the latter is NaN if an element was."""
    least, greatest = below.bits(F32), above.bits(F32)
    low = (below < 0).select(least, 0.0)
    return low, low.ne(low).select(low, greatest)
