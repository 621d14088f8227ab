"""Floats rounded to bytes, four registers at a time, with instructions that saturate."""

from __future__ import annotations

from collections.abc import Callable

from onert_llvm.irbuilder import Kernel, Val
from onert_llvm.irbuilder.math import nearest_even
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS, neighbours
from onert_llvm.target.isa import Isa


def packs(isa: Isa, tree: Expr) -> bool:
    """Whether a tree ends in bytes that the target packs."""
    return isinstance(tree, Apply) and tree.fn is Fn.WHOLE_BYTE and isa.architecture == "x86_64"


def packed_bytes(k: Kernel, tree: Expr, floats: Callable[[Expr, int], Val]) -> Val:
    """The results of four consecutive registers; `floats(e, i)` evaluates a tree in register number i."""
    assert isinstance(tree, Apply)
    real, zero = tree.args
    assert isinstance(zero, Const)
    values = [nearest_even(k, floats(real, i)) for i in range(REGISTERS)]
    return neighbours(k, values, tree.kind.signed, int(zero.value))
