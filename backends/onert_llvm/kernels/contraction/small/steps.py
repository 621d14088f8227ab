"""A step along k for a few rows of activations and columns of weights, with the processor's instructions for it."""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.irbuilder import I8, I32, Kernel, Val, Var, intrinsic
from onert_llvm.target.isa import Products

UNIT = {Products.BYTES: 1, Products.SMLAD: 4, Products.HELIUM: 16}
"""Terms of a step."""

ROUND = {Products.BYTES: 4, Products.SMLAD: 4, Products.HELIUM: 1}
"""Steps that are unrolled."""

Sums = Sequence[Sequence[Var]]


def halves(k: Kernel, word: Val, signed: bool = True) -> tuple[Val, Val]:
    """Bytes 0 and 2 of a word, and its bytes 1 and 3, each widened to two 16-bit numbers."""
    name = "llvm.arm.sxtb16" if signed else "llvm.arm.uxtb16"
    turned = intrinsic(k.b, "llvm.fshr.i32", I32, word, word, k.const(I32, 8))
    return intrinsic(k.b, name, I32, word), intrinsic(k.b, name, I32, turned)


def step(k: Kernel, sums: Sums, rows: Sequence[Val], weights: Val, at: int, signed: bool) -> None:
    """Add the products of step `at` of a round to `sums[row][column]`.

    `rows` are the addresses of the rows' bytes, word-aligned for SMLAD. A step's weights are the bytes of each column,
    one column after the other.
    """
    if k.isa.products is Products.SMLAD:
        _smlad(k, sums, rows, weights, at, signed)
    elif k.isa.products is Products.HELIUM:
        _helium(k, sums, rows, weights, at)
    else:
        _bytes(k, sums, rows, weights, at, signed)


def _smlad(k: Kernel, sums: Sums, rows: Sequence[Val], weights: Val, at: int, signed: bool) -> None:
    across, own = len(sums[0]), k.view(weights, I32, 1)
    x = [halves(k, k.view(row, I32, 1)[at].load(), signed) for row in rows]
    for j in range(across):
        w = halves(k, own[at * across + j].load())
        for r, row in enumerate(x):
            for half in range(2):
                total = sums[r][j]
                total.set(intrinsic(k.b, "llvm.arm.smlad", I32, row[half], w[half], total.get()))


def _helium(k: Kernel, sums: Sums, rows: Sequence[Val], weights: Val, at: int) -> None:
    across = len(sums[0])
    x = [k.view(row, I8, 1)[at * 16].load(16) for row in rows]
    w = [k.view(weights, I8, 1)[(at * across + j) * 16].load(16) for j in range(across)]
    plain = [k.const(I32, 0)] * 3  # signed, accumulating, not exchanged
    for r, own in enumerate(x):
        for j, other in enumerate(w):
            total = sums[r][j]
            total.set(intrinsic(k.b, "llvm.arm.mve.vmldava.v16i8", I32, *plain, total.get(), own, other))


def _bytes(k: Kernel, sums: Sums, rows: Sequence[Val], weights: Val, at: int, signed: bool) -> None:
    across = len(sums[0])
    x = [k.view(row, I8, 1)[at].load().cast(I32, signed=signed) for row in rows]
    w = [k.view(weights, I8, 1)[at * across + j].load().cast(I32) for j in range(across)]
    for r, own in enumerate(x):
        for j, other in enumerate(w):
            total = sums[r][j]
            total.set(total.get() + own * other)
