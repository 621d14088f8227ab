"""`onert_run -q`: write a quantised copy of a model, which then runs in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from onert.frontend.files import open_file
from onert.ir import CompileError, ExecutionError, ModelError
from onert.ir.process import imports
from onert.ir.process.replacing import replace

WEIGHTS = {"int8_wo": 8, "int16_wo": 16}
"""Kinds that quantise only weights, with their numbers of bits."""
INTEGERS = ("uint8", "int16")
"""Kinds that quantise everything, for which the ranges of all tensors must be known."""
KINDS = (*INTEGERS, *WEIGHTS)
"""All kinds, under ONE's names."""
_SUFFIXES = (".tflite", ".circle")

Ranges = Mapping[int, tuple[float, float]]


def quantized_file(model: Path, kind: str, target: Path | None, ranges: Ranges | None = None) -> Path:
    """Write a quantised copy to `target` (default: beside the model) and return its path.

    Kinds in INTEGERS need `ranges`, the range of each tensor. Raises CompileError unless the model is a TFLite or
    circle file, and ModelError if it has nothing to quantise.
    """
    require_file(model, kind)
    path = target or model.with_suffix(f".{kind}{model.suffix}")
    try:
        content = bytes(open_file(model).data)
        if ranges is None:
            written: bytes = _writer("weights_only")(content, WEIGHTS[kind])
        else:
            written = _writer("full_integers")(content, kind, ranges)
        replace(path, (written,))
    except ModelError as error:
        raise ModelError(f"{model}: {error}") from error
    except OSError as error:
        raise ExecutionError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def require_file(model: Path, kind: str) -> None:
    """Raises CompileError unless the model is a TFLite or circle file."""
    if model.suffix not in _SUFFIXES:
        raise CompileError(f"-q {kind} is given {model}, expected a {' or '.join(_SUFFIXES)} file")


def _writer(name: str) -> Callable[..., bytes]:
    found: Callable[..., bytes] = imports.module(f"onert.frontend.tflite_schema.quantize.{name}").quantized
    return found
