"""A backend whose tensors have rows of whole vectors: a memory space with its own layout."""

from __future__ import annotations

from math import prod

import numpy as np

from onert.backend import Backend, HostMemory, Memory, Sequence, Settings
from onert.ir import Array, CallTypes, Op, Operation, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary

from .stored import StoredKernel

VECTOR = 16


class PaddedMemory(HostMemory):
    """Host memory in which the last dimension is padded with NaN to a multiple of 16 elements."""

    name = "host-padded"

    def _padded(self, type_: TensorType) -> tuple[int, ...]:
        *others, last = (d or 0 for d in type_.shape) if type_.rank else (1,)
        return (*others, -(-last // VECTOR) * VECTOR)

    def nbytes(self, type_: TensorType) -> int:
        return prod(self._padded(type_)) * type_.dtype.itemsize

    def view(self, arena: Array, offset: int, type_: TensorType) -> Array:
        raw = arena[offset : offset + self.nbytes(type_)]
        assert raw.nbytes == self.nbytes(type_), "the arena is too small"
        rows = raw.view(type_.dtype.numpy).reshape(self._padded(type_))
        rows[..., type_.shape[-1] :] = np.nan
        return rows[..., : type_.shape[-1]]


PADDED = PaddedMemory()


class Padded(Backend):
    """Binary arithmetic on floats, and reshapes of them."""

    api_version = 2
    name = "padded"

    @property
    def memory(self) -> Memory:
        return PADDED

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if not all(t is None or (t.is_static and t.rank and t.dtype.is_float) for t in types.inputs[:1]):
            return "only rows of floats are run"
        plain = isinstance(operation.op, Binary) and operation.op.activation is Activation.NONE
        return None if plain or isinstance(operation.op, Reshape) else f"there is no {operation.op.label}"

    def generate(self, sequence: Sequence, settings: Settings) -> StoredKernel:
        return StoredKernel(sequence, _run)


def _run(op: Op, given: list[Array], out: Array) -> None:
    out[...] = op.kind.value.numpy(*given) if isinstance(op, Binary) else given[0].reshape(out.shape)
