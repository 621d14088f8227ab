"""Packs four registers of 32-bit results into one of bytes with x86 packs, so that what follows is computed once."""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, Kernel, Val, vec

from .interleave_x86 import REGISTERS
from .interleave_x86 import packed as packed_by_blocks
from .requantize_int8 import Requantize


def is_available(k: Kernel) -> bool:
    """Whether the target has the instructions."""
    return k.isa.architecture == "x86_64"


def packed(k: Kernel, task: Task, how: Requantize, signed: bool, values: Sequence[Val]) -> Val:
    """The bytes of four registers, in order, bounded as specified by `how`."""
    return _ordered(packed_by_blocks(k, task, how.clamped, signed, values))


def packed_to_type(k: Kernel, task: Task, signed: bool, values: Sequence[Val]) -> Val:
    """The same, bounded by their type."""
    return _ordered(packed_by_blocks(k, task, False, signed, values))


def _ordered(found: Val) -> Val:
    blocks = found.lanes // REGISTERS**2
    order = [REGISTERS * block + r for r in range(REGISTERS) for block in range(blocks)]
    return found.bits(vec(I32, found.lanes // REGISTERS)).shuffle(order).bits(found.type)


def unpacked(whole: Val) -> list[Val]:
    """The bytes of each of the four registers."""
    size = whole.lanes // REGISTERS
    return [whole.shuffle(range(first, first + size)) for first in range(0, whole.lanes, size)]
