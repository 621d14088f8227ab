"""The cases of ONNX's own test suite, and whether onert reproduces their results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from attrs import frozen

KINDS = ("simple", "pytorch-operator", "pytorch-converted", "node")
BACKENDS = (("reference",), ())
"""The backends that cases run on: the NumPy reference, and the default ones, native where possible."""


@frozen(eq=False)
class OnnxCase:
    """A model, its inputs and expected results, and the suite's tolerances."""

    name: str
    model: bytes
    sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    rtol: float
    atol: float


@cache
def cases(kind: str) -> dict[str, Any]:
    """The suite's cases of a kind by name, without their data. Results of node cases are computed now."""
    from onnx.backend.test.case import base
    from onnx.backend.test.loader import load_model_tests

    with (
        patch.object(base, "process_snippet", lambda *_: ("", "")),  # the cases' sources, for documentation
        warnings.catch_warnings(),  # the suite computes infinities and NaNs on purpose
    ):
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind=kind)}


def read(kind: str, name: str) -> OnnxCase:
    """A case with its data."""
    case = cases(kind)[name]
    if case.model is not None:
        sets = tuple((tuple(i), tuple(o)) for i, o in case.data_sets)
        return OnnxCase(name, case.model.SerializeToString(), sets, case.rtol, case.atol)
    folder = Path(case.model_dir)
    model = (folder / "model.onnx").read_bytes()
    found = tuple(_set(model, each) for each in sorted(folder.glob("test_data_set_*")))
    return OnnxCase(name, model, found, case.rtol, case.atol)


def _set(model: bytes, folder: Path) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    import onnx

    graph = onnx.load_from_string(model).graph
    given = {i.name for i in graph.initializer}
    inputs = [i for i in graph.input if i.name not in given]
    return tuple(_values(folder, "input", inputs)), tuple(_values(folder, "output", graph.output))


def _values(folder: Path, side: str, declared: Any) -> Iterator[Any]:
    import onnx
    from onnx import numpy_helper

    for at, value in enumerate(declared):
        content = (folder / f"{side}_{at}.pb").read_bytes()
        if value.type.HasField("sequence_type"):
            yield numpy_helper.to_list(onnx.SequenceProto.FromString(content))
        else:
            yield numpy_helper.to_array(onnx.TensorProto.FromString(content))


def problem(case: OnnxCase, *backends: str) -> str | None:
    """What is wrong with onert's results for a case; None if they match."""
    import onert
    from onert.runtime.session import Backend

    try:
        prepared = Backend.prepare(case.model, backends=backends)
        for inputs, expected in case.sets:
            results = prepared.run([_read(i) for i in inputs])
            for at, (mine, theirs) in enumerate(zip(results, expected, strict=True)):
                wrong = difference(mine, _plain(theirs), case.rtol, case.atol)
                if wrong is not None:
                    return f"result {at}: {wrong}"
    except onert.OnertError as error:
        return f"{type(error).__name__}: {error}"
    return None


def _read(value: Any) -> Any:
    if hasattr(value, "SerializeToString"):
        from onnx import numpy_helper

        return numpy_helper.to_array(value)
    return value


def _plain(value: Any) -> Any:
    """Sub-byte elements widened to bytes, as onert stores them."""
    value = _read(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.name in _NARROW:
        return value.astype(_NARROW[value.dtype.name])
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return np.array([v.decode() if isinstance(v, bytes) else v for v in value.reshape(-1)], object).reshape(
            value.shape
        )
    return value


_NARROW = {"int2": np.int8, "int4": np.int8, "uint4": np.uint8, "uint2": np.uint8}


def difference(mine: Any, theirs: Any, rtol: float, atol: float) -> str | None:
    """How two values differ in shape, type or elements; None if they do not."""
    if isinstance(theirs, list):
        if not isinstance(mine, list) or len(mine) != len(theirs):
            return "another sequence is expected"
        found = (difference(a, b, rtol, atol) for a, b in zip(mine, theirs, strict=True))
        return next((each for each in found if each is not None), None)
    if not isinstance(mine, np.ndarray):
        return f"a {type(mine).__name__}, expected a tensor"
    theirs = np.asarray(theirs)
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return f"{mine.dtype}{list(mine.shape)}, expected {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype.kind in "OSUb":
        return None if np.array_equal(mine, theirs) else "other elements"
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = mine.astype(wide), theirs.astype(wide)
    if np.allclose(a, b, rtol=max(rtol, 1e-3), atol=max(atol, 1e-7), equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"differs by {np.nanmax(np.abs(a - b))}"
