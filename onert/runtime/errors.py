"""Errors of the interfaces that are others', which are also what these others raise."""

from __future__ import annotations

from onert.ir import OnertError


class ArgumentError(OnertError, ValueError):
    """A wrong argument or model: a ValueError, as LiteRT's interpreter and ONNX Runtime's session raise."""


class RunError(OnertError, RuntimeError):
    """A failed preparation or run: a RuntimeError, as LiteRT's interpreter raises."""
