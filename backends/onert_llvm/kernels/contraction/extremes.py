"""The least and the greatest of some floats and 0, found while these are in registers, by one instruction for each.

Bits of floats are compared as integers: of those with a sign the greatest as they are without one is the least number,
and the greatest number has the greatest bits that are not negative. Not-a-number is beyond infinity.
"""

from __future__ import annotations

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, Var

PAIRS, PARTS, TILES = SLOTS = ("extremes", "extremes_parts", "extremes_tiles")
"""Where a command's extremes go: a pair for each of so many parts. It is cut into as many, or has fewer work tiles."""


@frozen(eq=False)
class Extremes:
    """What was seen of elements so far, lane by lane: the greatest bits without a sign, and with one."""

    below: Var
    above: Var

    def see(self, x: Val, mask: Val | None = None) -> None:
        """A register more, of which lanes under a mask count."""
        bits = x.bits(self.below.get().type)
        bits = bits if mask is None else mask.select(bits, bits.like(0))
        self.join(bits, bits)

    def join(self, below: Val, above: Val) -> None:
        """What was seen elsewhere."""
        self.below.set(self.below.get().call("umax", below))
        self.above.set(self.above.get().call("smax", above))

    def over_lanes(self) -> tuple[Val, Val]:
        """The same of all lanes."""
        below = self.below.get().over_lanes(lambda a, b: a.call("umax", b))
        return below, self.above.get().over_lanes(lambda a, b: a.call("smax", b))

    def write(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        """Put down what work tiles from `begin` to `end` have seen, as that of the parts that begin among them."""
        tiles, parts = task.i64(TILES), task.i64(PARTS)
        first, last = ((at * parts + (tiles - 1)) // tiles for at in (begin, end))
        out, found = task.view(PAIRS, I32, 2, 1), self.over_lanes()
        with k.loop(last, first) as part:
            for i, value in enumerate(found):
                out[part, i].store(value)


def extremes(k: Kernel, lanes: int) -> Extremes:
    """Nothing seen yet but 0."""
    return Extremes(*(k.var(k.zeros(I32, lanes)) for _ in range(2)))


def least_and_greatest(k: Kernel, below: Val, above: Val) -> tuple[Val, Val]:
    """The numbers that these are the bits of; the latter is NaN where an element was."""
    least, greatest = below.bits(F32), above.bits(F32)
    low = (below < 0).select(least, 0.0)
    return low, low.ne(low).select(low, greatest)
