"""Custom operators that users implement in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

CUSTOM_OPS: dict[str, Callable[..., Any]] = {}
"""Implementations registered by `custom_op` in this process, by custom code. They override built-in ones."""


def custom_op(code: str) -> Callable[[Function], Function]:
    """Register a function as the implementation of a custom operator, for models loaded from now on.

    The function is called with the inputs as NumPy arrays and the keyword `options`, the operator's custom options as
    bytes. It returns one array per output, with the element type and shape that the model declares:

        @onert.custom_op("Double")
        def double(x, *, options):
            return 2 * x
    """

    def register(function: Function) -> Function:
        CUSTOM_OPS[code] = function
        return function

    return register
