"""Operations that come from outside: a user's Python, and what nobody has an implementation of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from onert.ir.dtype import Array
from onert.ir.op import Op
from onert.ir.types import TensorType, unranked


def declared(results: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Result types as a file declares them, without quantisation."""
    return tuple(r.plain() if r.ranked else unranked(r.dtype) for r in results)


@frozen
class Unsupported(Op):
    """An operator that has no implementation here.

    It stands in the graph with the results that the file declares, so that the rest can be looked at and all such
    operators be named at once; it cannot be compiled.

    - `xs`: whatever the file gives it
    """

    code: str
    results: tuple[TensorType, ...] = ()

    @property
    def label(self) -> str:
        return self.code

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        return declared(self.results)

    def check_arity(self, present: Any) -> None:
        """Any operands are right: nothing is known of the operator."""


@frozen
class Python(Op):
    """A custom operator implemented by a Python function on NumPy arrays.

    The function is given the inputs as arrays, and `options`, the operator's custom options as the file has them; it
    gives an array or a tuple of arrays. Results have the types that the file declares.

    - `xs`: whatever the file gives it, absent ones as None
    """

    code: str
    function: Callable[..., Any] = field(repr=False)
    options: bytes = b""
    results: tuple[TensorType, ...] = ()

    @property
    def label(self) -> str:
        return self.code

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        return declared(self.results)

    def evaluate(self, *xs: Array) -> tuple[Array, ...]:
        found = self.function(*xs, options=self.options)
        return tuple(found) if isinstance(found, tuple | list) else (found,)
