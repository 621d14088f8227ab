"""Inputs and outputs as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array
from onert.tools.inputs import InputValue

WHOLE = 64
"""The most elements of an output that is printed in full."""
_FIRST = 8
_LONGEST_TEXT, _LINE = 500, 110


def printed_inputs(infos: Sequence[TensorInfo], given: Sequence[InputValue]) -> Iterator[str]:
    """A line for each input: its name, type and source."""
    for i, (info, one) in enumerate(zip(infos, given, strict=True)):
        yield f"input {i} {info.name!r} {one.array.dtype}{list(one.array.shape)}: {one.source}"


def printed_outputs(infos: Sequence[TensorInfo], outputs: Sequence[Array]) -> Iterator[str]:
    """A line for each output with all its elements, or only the first ones if it is large."""
    for i, (info, array) in enumerate(zip(infos, outputs, strict=True)):
        yield f"output {i} {info.name!r} {array.dtype}{list(array.shape)}: {_elements(array)}"


def _elements(array: Array) -> str:
    shown = array if array.size <= WHOLE else array.reshape(-1)[:_FIRST]
    if array.ndim and array.size == max(array.shape):
        shown = shown.reshape(-1)
    if array.dtype == object:
        texts = ", ".join(_text(element) for element in shown.reshape(-1).tolist())
        return f"[{texts}]{'' if shown.size == array.size else ' ...'}"
    words = np.array2string(shown, _LINE, precision=4, separator=", ", suppress_small=True, threshold=WHOLE + 1)
    lines = words.replace("\n", "\n  ")
    return f"{lines}{'' if shown.size == array.size else ' ...'}"


def _text(element: object) -> str:
    words = element.decode("utf-8", "replace") if isinstance(element, bytes) else str(element)
    return repr(words if len(words) <= _LONGEST_TEXT else words[:_LONGEST_TEXT] + "...")
