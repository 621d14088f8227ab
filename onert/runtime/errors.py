"""Errors of LiteRT's and ONNX Runtime's interfaces; each derives from the built-in class that those raise."""

from __future__ import annotations

from onert.ir import OnertError


class ArgumentError(OnertError, ValueError):
    """A wrong argument or model: a ValueError, as LiteRT's interpreter and ONNX Runtime's session raise."""


class RunError(OnertError, RuntimeError):
    """A failed preparation or run: a RuntimeError, as LiteRT's interpreter raises."""
