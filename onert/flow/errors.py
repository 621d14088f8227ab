"""Errors that are also those which Myelin raises, so that programs written for it catch them."""

from __future__ import annotations

from onert.ir import ExecutionError, ModelError


class DefinedError(ModelError, IndexError):
    """A variable is defined a second time."""


class UnknownTensorError(ExecutionError, ValueError):
    """A key names no tensor."""


class KeyRangeError(ExecutionError, IndexError):
    """An index is out of range, or names a tensor of another cell."""


class FormatError(ExecutionError, TypeError):
    """A value does not fit the format of a tensor."""
