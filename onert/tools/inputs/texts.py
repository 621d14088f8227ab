"""Text for inputs of strings."""

from __future__ import annotations

import math

import numpy as np

from onert.backend import TensorInfo
from onert.ir import DType, ExecutionError
from onert.ir import shape as shapes

from .input_values import InputValue

MAX_TEXT = 1 << 24
"""The most bytes of text for an input."""


def takes_text(info: TensorInfo) -> bool:
    """Whether an input's elements are strings."""
    return info.dtype is DType.STRING


def text(content: bytes, name: str, info: TensorInfo) -> InputValue:
    """Text as an input: the whole text if the input has one element, otherwise a line per element.

    A newline at the end is dropped. Raises ExecutionError if the input does not take strings, the text is too long, or
    the number of lines does not match.
    """
    if not takes_text(info):
        raise ExecutionError(
            f"{name} is text, but input {info.name!r} has element type {info.dtype.numpy}, expected strings"
        )
    if len(content) > MAX_TEXT:
        raise ExecutionError(f"{name} has {len(content)} bytes, expected text of at most {MAX_TEXT}")
    whole = content.removesuffix(b"\n").removesuffix(b"\r")
    shape = info.open_shape
    is_one = shapes.is_static(shape) and math.prod(d or 1 for d in shape) == 1
    elements = [whole] if is_one else whole.splitlines()
    if not shapes.is_static(shape):
        unknown = [at for at, d in enumerate(shape) if d is None]
        rest = math.prod(d for d in shape if d is not None)
        lines = len(elements) // rest if rest and len(elements) % rest == 0 else -1
        shape = tuple(d if d is not None else (lines if at == unknown[-1] else 1) for at, d in enumerate(shape))
    if math.prod(d or 0 for d in shape) != len(elements) or -1 in shape:
        raise ExecutionError(
            f"{name} has {len(elements)} lines, but input {info.name!r} has shape {shapes.text(info.open_shape)}, "
            "expected a line for each element"
        )
    array = np.empty(len(elements), object)
    array[:] = elements
    count = f"{len(elements)} strings" if len(elements) != 1 else "one string"
    return InputValue(array.reshape(tuple(d or 0 for d in shape)), f"{name}, {count}")
