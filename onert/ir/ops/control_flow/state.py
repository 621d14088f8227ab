"""Resource variables: named tensors that persist from run to run."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Effect, Op, require
from onert.ir.ops.custom import declared
from onert.ir.types import CallTypes, TensorType


@frozen
class VarHandle(Op):
    """The handle of the resource variable with this name."""

    container: str = ""
    shared_name: str = ""

    def infer(self) -> TensorType:
        return TensorType(DType.RESOURCE, ())

    def evaluate(self) -> Array:
        out = np.empty((), object)
        out[()] = ("variable", self.container, self.shared_name)
        return out


def _handle(resource: TensorType) -> None:
    require(resource.dtype in (DType.RESOURCE, DType.INT32), f"the handle is {resource.dtype.text}, expected resource")


@frozen
class ReadVariable(Op):
    """The value of a resource variable; `results` is its declared type.

    - `resource`: the variable's handle. Raises RuleError if the variable was not assigned yet.
    """

    results: tuple[TensorType, ...] = ()

    effect: ClassVar[Effect] = Effect.READ

    def infer(self, resource: TensorType) -> tuple[TensorType, ...]:
        _handle(resource)
        return declared(self.results)

    def evaluate_in(self, context: Context, types: CallTypes, resource: Array) -> Array:
        key = resource.reshape(-1)[0]
        require(key in context.state, f"variable {key[-1]!r} is read before anything was assigned to it")
        kept: Array = context.state[key]
        return kept.copy()


@frozen
class AssignVariable(Op):
    """Assigns a value to a resource variable.

    - `resource`: the variable's handle
    - `value`: any
    """

    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, resource: TensorType, value: TensorType) -> tuple[TensorType, ...]:
        _handle(resource)
        return ()

    def evaluate_in(self, context: Context, types: CallTypes, resource: Array, value: Array) -> tuple[Array, ...]:
        context.state[resource.reshape(-1)[0]] = value.copy()
        return ()
