"""The cases made from Android's neural-network test specifications give the results their authors wrote."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert

FOLDER = SHARED / "conformance" / "nnapi"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text()) if SHARED.is_dir() else []


@needs_shared
def test_all_727_cases_are_present() -> None:
    assert len(CASES) == 727


@needs_shared
@pytest.mark.parametrize("case", [c["case"] for c in CASES])
def test_a_case_gives_the_specified_results(case: str) -> None:
    arrays = np.load(FOLDER / f"{case}.npz")
    run = onert.Execution(onert.compile(onert.load(FOLDER / f"{case}.tflite"), num_threads=1))
    inputs = [arrays[f"in{i}"] for i in range(len(run.program.inputs))]
    for position, array in enumerate(inputs):
        run.set_input_shape(position, array.shape)
    outputs = run.run(inputs)
    for i, found in enumerate(outputs.values()):
        assert found.dtype == run.program.outputs[i].dtype.numpy
        if f"out{i}" not in arrays:
            continue  # division by zero: the authors only require that it does not crash
        expected = arrays[f"out{i}"]
        if found.ndim == 0:  # the specification writes a scalar as one element of rank 1
            found = found.reshape(1)
        assert found.shape == expected.shape
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        elif found.dtype == bool or found.dtype.itemsize > 2:
            np.testing.assert_array_equal(found, expected)
        else:
            assert np.max(np.abs(found.astype(np.int64) - expected.astype(np.int64)), initial=0) <= 1
