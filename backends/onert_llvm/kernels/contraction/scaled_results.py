"""Endings that scale exact sums of bytes to real numbers, which may be converted to bytes again."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, Kernel, Type, Val

from .contraction import Ending, Finish
from .epilogue import PLAIN, Epilogue
from .register_tile import Block, Row

_BOUNDS = {"i8": (-128.0, 127.0), "u8": (0.0, 255.0)}


class Real(Ending):
    """Sums scaled to real numbers, followed by an epilogue."""

    __slots__ = ()

    @property
    def epilogue(self) -> Epilogue:
        return PLAIN

    def start(self, k: Kernel, task: Task, column: Val) -> Val:
        """The initial accumulators of a register of columns."""
        raise NotImplementedError

    def real(self, k: Kernel, task: Task, column: Val, mask: Val | None) -> Callable[[Val, Val], Val]:
        """For a register of columns, converts a row's sums to real numbers and adds the bias; takes sums and row."""
        raise NotImplementedError

    def final(self, value: Val) -> Val:
        """A register of results in its stored form."""
        return value

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return self.start(k, task, block.at(vector))

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        following = self.epilogue.finisher(k, task, block)

        def column(j: int) -> Finish:
            after, real = following(j), self.real(k, task, block.at(j), block.masks[j])

            def value(row: Row, sums: Val) -> Val:
                return self.final(after(row, real(sums - row.more[0] if row.more else sums, row.number)))

            return value

        return column


@frozen
class Scaled(Real):
    """Sums in float32 times their column's factor, then the epilogue.

    Slots `start` (32 bits, initial accumulators) and `factors` have an element for each column, padded to whole
    registers. If `stored` is "i8" or "u8", results saturate to such bytes, and NaN becomes the largest. With "i32" the
    sums are stored unchanged.
    """

    epilogue: Epilogue = PLAIN
    stored: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        return ("start", *(() if self.stored == "i32" else ("factors",)), *self.epilogue.slots)

    @property
    def element(self) -> Type:
        return {"": F32, "i32": I32}.get(self.stored, I8)

    def start(self, k: Kernel, task: Task, column: Val) -> Val:
        return task.view("start", I32, 1)[column].load(k.isa.f32)

    def real(self, k: Kernel, task: Task, column: Val, mask: Val | None) -> Callable[[Val, Val], Val]:
        if self.stored == "i32":
            return lambda sums, _: sums
        factors = task.view("factors", F32, 1)[column].load(k.isa.f32)
        return lambda sums, _: sums.cast(F32) * factors

    def final(self, value: Val) -> Val:
        if self.stored not in _BOUNDS:
            return value
        low, high = _BOUNDS[self.stored]
        whole = value.ne(value).select(high, value.clamp(low, high))
        return whole.cast(I32).cast(I8)


@frozen
class BlockScaled(Real):
    """Results from sums of scaled runs: subtract the contribution of the row's zero point, then multiply by its scale.

    Slots `row_scales` and `row_offsets` have an element per row; `sums` has for each column the float32 sum of its
    scaled weights, padded to whole registers. Then bias and epilogue follow.
    """

    epilogue: Epilogue = PLAIN

    @property
    def slots(self) -> tuple[str, ...]:
        return ("sums", "row_scales", "row_offsets", *self.epilogue.slots)

    def real(self, k: Kernel, task: Task, column: Val, mask: Val | None) -> Callable[[Val, Val], Val]:
        lanes = k.isa.f32
        weights = task.view("sums", F32, 1)[column].load(lanes)
        bias = self.epilogue.start(k, task, column, lanes, mask) if self.epilogue.bias else None

        def value(sums: Val, row: Val) -> Val:
            moved = task.view("row_offsets", I32, 1)[row].load().cast(F32).splat(lanes)
            out = (sums - moved * weights) * task.view("row_scales", F32, 1)[row].load().splat(lanes)
            return out if bias is None else out + bias

        return value
