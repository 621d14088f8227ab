"""Exact weighted sums of two bytes in integers, with AVX-512's dot products and two-register byte permutes.

A lane holds a byte of x and one of y, each the upper half of a word whose lower half is 0. A 24-bit multiplier is split
into a word, which multiplies such a word (256 times the byte), and the remaining unsigned byte.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val, intrinsic, vec
from onert_llvm.irbuilder.text import vector_constant
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS, order, packed
from onert_llvm.target.isa import Dot, Isa, Lookup

from . import broadcast_rows
from .pairwise import OPERANDS, SINGLE

BITS = 24
"""The bits of a multiplier, including the sign."""


def has(isa: Isa) -> bool:
    """Whether a target has the instructions."""
    return isa.dot is Dot.VNNI and isa.lookup is Lookup.PERMUTE and not isa.narrow


@frozen
class ByteSums(Value):
    """`out = (x · x_factor + y · y_factor + offset) >> right`, `clamped` to [`low`, `high`] or else to bytes.

    All are `signed` or none is; unsigned bytes have 128 subtracted before they are multiplied. `words` has the upper 16
    bits of both factors, x's in the lower half; `digits` the lower 8 bits of both, each in the upper half of a word. No
    sum exceeds 32 bits. Work tiles and `single` are those of `Pairwise`.
    """

    signed: bool = True
    clamped: bool = False
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        bounds = ("low", "high") if self.clamped else ()
        return (*broadcast_rows.slots(OPERANDS), "out", "width", "words", "digits", "offset", "right", *bounds)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        step = REGISTERS * lanes
        words, digits, offset, right = (
            task.i64(name).cast(I32).splat(lanes) for name in ("words", "digits", "offset", "right")
        )
        uppers = Val(k.b, vector_constant(vec(I8, step), tuple(-(i % 2) for i in range(step)))) < 0

        def sums(x: Val, y: Val, register: int) -> Val:
            places = [at for first in order(k.isa)[register * lanes :][:lanes] for at in (0, first, 0, step + first)]
            index = Val(k.b, vector_constant(vec(I8, step), tuple(places)))
            both = uppers.select(intrinsic(k.b, "llvm.x86.avx512.vpermi2var.qi.512", x.type, x, index, y), 0)
            pair, group = (k.isa.dot.value.named(n, lanes) for n in (k.isa.dot.value.pairs, k.isa.dot.value.intrinsic))
            total = intrinsic(k.b, pair, offset.type, offset, both.bits(offset.type), words)
            return intrinsic(k.b, group, offset.type, total, digits.bits(both.type), both) >> right

        with k.loop(end, begin) as r:
            out = task.view("out", I8, width, 1)[r]
            rows = broadcast_rows.rows_at(k, task, OPERANDS, I8, r)

            def part(at: Val, mask: Val | None) -> None:
                found = (
                    row[0].load().splat(step) if s else row[at].load(step, mask)
                    for row, s in zip(rows, self.single, strict=True)
                )
                x, y = (value if self.signed else value ^ -128 for value in found)
                values = [sums(x, y, register) for register in range(REGISTERS)]
                out[at].store(packed(k, task, self.clamped, self.signed, values), mask)

            whole = width - width % step
            with k.loop(whole, step=step) as at:
                part(at, None)
            with k.when(whole < width):
                part(whole, k.iota(I8, step) < (width - whole).cast(I8).splat(step))
