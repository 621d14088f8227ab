"""The cases of ONNX's own test suite, and whether onert gives their results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

KINDS = ("simple", "pytorch-operator", "pytorch-converted", "node")


@frozen(eq=False)
class OnnxCase:
    """A model, its inputs and what it must give, in tolerances of the suite."""

    name: str
    model: bytes
    sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    rtol: float
    atol: float


@cache
def cases(kind: str) -> dict[str, Any]:
    """The suite's cases of a kind by name, their data not read yet."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():  # the suite computes infinities and what is no number on purpose
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


def problem(case: OnnxCase, backends: str) -> str | None:
    """What is wrong with onert's results of a case; None where they are the suite's."""
    import onert

    try:
        program = onert.compile(onert.load(case.model), onert.Options(backends=tuple(backends.split(","))))
        for inputs, expected in case.sets:
            arrays = [_given(i, info) for i, info in zip(inputs, program.inputs, strict=True)]
            results = list(onert.Execution(program).run(arrays).values())
            for at, (mine, theirs) in enumerate(zip(results, expected, strict=True)):
                wrong = difference(_taken(mine), _plain(theirs), case.rtol, case.atol)
                if wrong is not None:
                    return f"result {at}: {wrong}"
    except onert.OnertError as error:
        return f"{type(error).__name__}: {error}"
    return None


def _given(value: Any, info: Any) -> Any:
    """An input as onert takes it: sequences and optionals boxed."""
    from onert.ir import DType
    from onert.ir.ops.control_flow.sequences import Items, boxed

    if info.dtype is not DType.VARIANT:
        return _plain(value)
    entries = () if value is None else tuple(value) if isinstance(value, list) else (value,)
    plain = tuple(np.asarray(_plain(v)) for v in entries)
    inside = boxed(Items(plain))[()] if isinstance(value, list) else None
    optional = info.name.startswith("opt") and not info.name.startswith("opt_seq_")
    return boxed(Items(() if value is None else (inside,) if inside is not None and optional else plain))


def _taken(value: Any) -> Any:
    """A result as the suite has it: boxed sequences as lists, what is in an optional as it is."""
    from onert.ir.ops.control_flow.sequences import Items

    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 0 and isinstance(value[()], Items):
        return [_taken(boxed_entry(v)) for v in value[()].entries]
    return np.asarray(value)


def boxed_entry(entry: Any) -> Any:
    from onert.ir.ops.control_flow.sequences import Items, boxed

    return boxed(entry) if isinstance(entry, Items) else entry


def _plain(value: Any) -> Any:
    """Strings as bytes and elements of less than a byte as bytes, as onert has them."""
    if hasattr(value, "SerializeToString"):
        from onnx import numpy_helper

        value = numpy_helper.to_array(value)
    if isinstance(value, np.ndarray) and value.dtype.name in _NARROW:
        return value.astype(_NARROW[value.dtype.name])
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return np.array([v.encode() if isinstance(v, str) else v for v in value.reshape(-1)], object).reshape(
            value.shape
        )
    return value


_NARROW = {"int2": np.int8, "int4": np.int8, "uint4": np.uint8, "uint2": np.uint8}


def difference(mine: Any, theirs: Any, rtol: float, atol: float) -> str | None:
    """How two arrays differ in shape, type or elements; None where they do not."""
    if isinstance(theirs, list):
        if not isinstance(mine, list) or len(mine) != len(theirs):
            return "another sequence is expected"
        found = (difference(a, _plain(b), rtol, atol) for a, b in zip(mine, theirs, strict=True))
        return next((each for each in found if each is not None), None)
    if isinstance(mine, list):  # an optional
        return difference(mine[0], theirs, rtol, atol) if len(mine) == 1 else "something else is in the optional"
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
