"""Names of inputs and outputs: the signature's and the tensor's both work everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend import TensorInfo
from onert.backend.tensor_names import other_names
from onert.bundle.description import variables
from onert.bundle.header import describe
from onert.bundle.variables import Role, Variable
from onert.ir import DType
from onert.tools import inputs

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"
X = np.random.default_rng(0).uniform(0, 1, (1, 8, 8, 1)).astype(np.float32)


def _set(execution: onert.Execution, name: str, result: str) -> np.ndarray:
    execution.set_input(name, X)
    execution.execute()
    return execution.get_output(result)


def _run(execution: onert.Execution, name: str, result: str) -> np.ndarray:
    execution.run({name: X})
    return execution.get_output(result)


def _reshaped(execution: onert.Execution, name: str, result: str) -> np.ndarray:
    execution.set_input_shape(name, (1, 8, 8, 1))
    return _run(execution, name, result)


def _buffer(execution: onert.Execution, name: str, result: str) -> np.ndarray:
    mine = np.empty((1, 10), np.float32)
    execution.set_output(result, mine)
    execution.run({name: X})
    return mine


def _compiled(execution: onert.Execution, name: str, result: str) -> np.ndarray:
    program = onert.compile(onert.load(DIGITS), input_shapes={name: (1, 8, 8, 1)})
    return _run(onert.Execution(program), name, result)


WAYS: dict[str, Callable[[onert.Execution, str, str], np.ndarray]] = {
    "set_input": _set,
    "run": _run,
    "set_input_shape": _reshaped,
    "set_output": _buffer,
    "input_shapes": _compiled,
}


@pytest.mark.parametrize("signature", [None, "serving_default"])
@pytest.mark.parametrize("name", ["image", "serving_default_image:0"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_an_input_is_found_by_each_of_its_names(
    way: Callable[[onert.Execution, str, str], np.ndarray], name: str, signature: str | None
) -> None:
    execution = onert.Execution(onert.compile(onert.load(DIGITS), signature=signature))
    first, second = (way(execution, name, result) for result in ("output_0", "StatefulPartitionedCall_1:0"))
    assert first.shape == (1, 10)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["image", "serving_default_image:0", "0", "in0"])
def test_npz_files_may_use_each_name(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "x.npz", **{name: X})
    (found,) = inputs.archive(tmp_path / "x.npz", onert.compile(onert.load(DIGITS)).inputs)
    np.testing.assert_array_equal(found, X)


NAMES: dict[str, tuple[tuple[str, ...], list[tuple[int, str]], tuple[tuple[str, ...], ...]]] = {
    "a signature's": (("t0", "t1"), [(0, "x"), (1, "y")], (("x",), ("y",))),
    "the tensor's": (("x", "y"), [(0, "t0"), (1, "t1")], (("t0",), ("t1",))),
    "its own again": (("x",), [(0, "x")], ((),)),
    "exported": (("serving_default_x:0",), [], (("x",),)),
    "exported, of two": (("serving_default_x:0", "serving_default_x:1"), [], ((), ())),
    "another's own": (("x", "y"), [(0, "y"), (1, "x")], ((), ())),
    "two tensors' in two signatures": (("s", "t"), [(0, "x"), (1, "x"), (1, "y")], ((), ("y",))),
    "none": (("x",), [(0, "")], ((),)),
}


@pytest.mark.parametrize(("names", "candidates", "wanted"), NAMES.values(), ids=NAMES.keys())
def test_ambiguous_names_are_dropped(
    names: tuple[str, ...], candidates: list[tuple[int, str]], wanted: tuple[tuple[str, ...], ...]
) -> None:
    assert other_names(names, candidates) == wanted


@pytest.mark.parametrize("others", [(), ("x",), ('a "b"', "c, d")])
def test_a_bundle_s_header_keeps_all_names(others: tuple[str, ...]) -> None:
    info = TensorInfo("serving_default_x:0", DType.FLOAT32, (1, 4), other_names=others)
    line = describe(Variable("net", Role.INPUT, info, 64))
    (found,) = variables(f" * Entry point net:\n *   {line}")
    assert found.info == info
