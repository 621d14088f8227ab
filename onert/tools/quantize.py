"""`onert_run -q`: a quantised file of a model, which then runs in its stead."""

from __future__ import annotations

from pathlib import Path

from onert.frontend.files import open_file
from onert.ir import CompileError, ExecutionError, ModelError
from onert.ir.process import imports

KINDS = ("uint8", "int16", "int8_wo", "int16_wo")
"""ONE's: everything as bytes or 16-bit integers, or weights only."""
_BITS = {"int8_wo": 8, "int16_wo": 16}
_SUFFIXES = (".tflite", ".circle")


def quantized_file(model: Path, kind: str, target: Path | None) -> Path:
    """Where the quantised model was written: `target`, or beside the model. CompileError for a kind that is not made
    here, or what is no TFLite or circle file; ModelError where the model has nothing to quantise.
    """
    if kind not in _BITS:
        raise CompileError(
            f"-q {kind} asks for integers everywhere, which takes ranges of every tensor; onert quantises weights only "
            f"(-q {', '.join(_BITS)}): quantise the file with ONE's or LiteRT's tools and run the result"
        )
    if model.suffix not in _SUFFIXES:
        raise CompileError(f"-q {kind} is given {model}, expected a {' or '.join(_SUFFIXES)} file")
    quantized = imports.module("onert.frontend.tflite_schema.weights_only").quantized
    path = target or model.with_suffix(f".{kind}{model.suffix}")
    try:
        written: bytes = quantized(bytes(open_file(model).data), _BITS[kind])
        path.write_bytes(written)
    except ModelError as error:
        raise ModelError(f"{model}: {error}") from error
    except OSError as error:
        raise ExecutionError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
