"""One-operation models from Glow's test suite reproduce that suite's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert

FOLDER = SHARED / "conformance" / "glow_tflite"
MODELS = sorted(p for p in FOLDER.glob("*.tflite") if p.with_suffix(".out0").exists()) if SHARED.is_dir() else []


def read(path: Path, info: onert.TensorInfo) -> np.ndarray:
    """The array in a file of one header byte and raw little-endian elements."""
    raw = path.read_bytes()[1:]
    shape = tuple(d for d in info.shape if d is not None)
    return np.frombuffer(raw, info.dtype.numpy).reshape(shape)


@needs_shared
def test_all_92_models_are_present() -> None:
    assert len(MODELS) == 92


@needs_shared
@pytest.mark.parametrize("model", MODELS, ids=lambda p: p.stem)
def test_a_model_reproduces_the_suite_s_results(model: Path) -> None:
    run = onert.Execution(onert.compile(onert.load(model)))
    inputs = [read(model.with_suffix(f".inp{i}"), info) for i, info in enumerate(run.program.inputs)]
    outputs = run.run(inputs)
    for i, (info, found) in enumerate(zip(run.program.outputs, outputs.values(), strict=True)):
        expected = read(model.with_suffix(f".out{i}"), info)
        if info.dtype.is_float:
            scale = max(float(np.max(np.abs(expected))), 1e-30)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)
        else:
            np.testing.assert_array_equal(found, expected)
