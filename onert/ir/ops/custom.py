"""External operations: custom operators in Python, and operators without an implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from onert.ir.dtype import Array
from onert.ir.op import Op
from onert.ir.types import TensorType, unranked


def declared(results: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Result types as declared in a file, without quantisation."""
    return tuple(r.plain() if r.ranked else unranked(r.dtype) for r in results)


def as_declared(op: Any, *xs: TensorType) -> tuple[TensorType, ...]:
    """An `infer` for kinds with any operands, whose `results` are declared."""
    return declared(op.results)


@frozen
class Unsupported(Op):
    """An operator that has no implementation here.

    It appears in the graph with the results declared in the file, so that the rest of the model can be inspected and
    all such operators can be reported at once. It cannot be compiled.

    - `xs`: the operator's inputs in the file
    """

    code: str
    results: tuple[TensorType, ...] = ()

    @property
    def label(self) -> str:
        return self.code

    infer = as_declared

    def check_arity(self, present: Any) -> None:
        """Accepts any operands, because the operator is unknown."""


@frozen
class Python(Op):
    """A custom operator implemented by a Python function on NumPy arrays.

    The function receives the inputs as arrays, and `options`, the operator's custom options as the file's raw bytes; it
    returns an array or a tuple of arrays. Results have the types declared in the file.

    - `xs`: the operator's inputs in the file, None for absent ones
    """

    code: str
    function: Callable[..., Any] = field(repr=False)
    options: bytes = b""
    results: tuple[TensorType, ...] = ()

    @property
    def label(self) -> str:
        return self.code

    infer = as_declared

    def evaluate(self, *xs: Array) -> tuple[Array, ...]:
        found = self.function(*xs, options=self.options)
        return tuple(found) if isinstance(found, tuple | list) else (found,)
