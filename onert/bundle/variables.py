"""The tensors of a bundle that callers see."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.backend import Place, Region, Symbol, TensorInfo
from onert.ir.value import Value

ALIGNMENT = 64


class Role(Enum):
    """How callers use a variable: written before a call, read after one, or left alone between calls."""

    INPUT = "input"
    OUTPUT = "output"
    STATE = "state"


@frozen
class Variable(Value):
    """A tensor of an entry point that callers see, `offset` bytes into mutables."""

    entry: str
    role: Role
    info: TensorInfo
    offset: int

    @property
    def symbol(self) -> Symbol:
        elements = self.info.type.nbytes // self.info.dtype.itemsize
        return Symbol(self.info.name, Place(Region.MUTABLES, self.offset), elements)
