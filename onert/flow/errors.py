"""Errors that derive from those that Myelin raises, so that programs written for it catch them."""

from __future__ import annotations

from onert.ir import ExecutionError, ModelError


class DefinedError(ModelError, IndexError):
    """A variable is defined a second time."""


class UnknownTensorError(ExecutionError, ValueError):
    """No tensor has this key."""


class KeyRangeError(ExecutionError, IndexError):
    """An index is out of range, or a tensor belongs to another cell."""


class FormatError(ExecutionError, TypeError):
    """A value does not fit the format of a tensor."""
