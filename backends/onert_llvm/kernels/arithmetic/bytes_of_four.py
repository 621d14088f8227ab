"""Packs four registers of 32-bit results into one of bytes with AVX-512, so that what follows is computed once."""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val, vec

from .interleave_x86 import REGISTERS
from .interleave_x86 import packed as packed_by_blocks
from .requantize_int8 import Requantize

_LANES = 16


def is_available(k: Kernel) -> bool:
    """Whether the target has the instructions."""
    return k.isa.rounds and k.isa.f32 == _LANES


def packed(k: Kernel, task: Task, how: Requantize, signed: bool, values: Sequence[Val]) -> Val:
    """The bytes of four registers, in order, bounded as specified by `how`."""
    return _ordered(packed_by_blocks(k, task, how.clamped, signed, values))


def packed_to_type(k: Kernel, task: Task, signed: bool, values: Sequence[Val]) -> Val:
    """The same, bounded by their type."""
    return _ordered(packed_by_blocks(k, task, False, signed, values))


def _ordered(found: Val) -> Val:
    order = [REGISTERS * block + r for r in range(REGISTERS) for block in range(_LANES // REGISTERS)]
    return found.bits(vec(I32, _LANES)).shuffle(order).bits(vec(I8, REGISTERS * _LANES))


def unpacked(whole: Val) -> list[Val]:
    """The bytes of each of the four registers."""
    return [whole.shuffle(range(first, first + _LANES)) for first in range(0, REGISTERS * _LANES, _LANES)]
