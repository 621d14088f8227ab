"""Windows on the plane [batch, height, width, channels]: their common attributes, rules and output sizes."""

from __future__ import annotations

from typing import Protocol

from onert.ir.shape import Dim

from .window import Margins, Padding, Window, output_dim, require_padding, require_step


class Sliding(Protocol):
    """An operation whose window slides over height and width."""

    @property
    def padding(self) -> Padding | Margins: ...
    @property
    def stride_height(self) -> int: ...
    @property
    def stride_width(self) -> int: ...


class Dilated(Sliding, Protocol):
    """A sliding operation whose window may be dilated."""

    @property
    def dilation_height(self) -> int: ...
    @property
    def dilation_width(self) -> int: ...


def require_strides(op: Sliding) -> None:
    """Raises RuleError for a stride below 1 or invalid explicit padding."""
    require_padding(op.padding, 2)
    require_step("stride_height", op.stride_height)
    require_step("stride_width", op.stride_width)


def require_dilated(op: Dilated) -> None:
    """Raises RuleError for a stride or dilation below 1 or invalid explicit padding."""
    require_strides(op)
    require_step("dilation_height", op.dilation_height)
    require_step("dilation_width", op.dilation_width)


def dilated_outputs(op: Dilated, height: Dim, width: Dim, window_height: Dim, window_width: Dim) -> tuple[Dim, Dim]:
    """Height and width of the result. Raises RuleError if the window does not fit."""
    return (
        output_dim(height, window_height, op.stride_height, op.dilation_height, op.padding.along(0)),
        output_dim(width, window_width, op.stride_width, op.dilation_width, op.padding.along(1)),
    )


def dilated_windows(op: Dilated, height: int, width: int) -> tuple[Window, Window]:
    """The windows along height and width, for a filter of `height` by `width`."""
    return (
        Window(height, op.stride_height, op.dilation_height, op.padding.along(0)),
        Window(width, op.stride_width, op.dilation_width, op.padding.along(1)),
    )
