"""Real ONNX models in onnxruntime, and inputs for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED

MODELS = SHARED / "models" / "onnx"
Shapes = Mapping[str, tuple[int, ...]]


def precise_session(model: str | bytes, threads: int = 0) -> Any:
    """An onnxruntime session on a file's path or content whose 8-bit products are exact on every processor, with its
    default number of threads if it is 0.

    By default its kernels for AVX2 and for AVX-512 without VNNI add pairs of products in 16 bits, which saturate. Skips
    the test if onnxruntime is missing.
    """
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = threads
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def session_of(name: str) -> tuple[Path, Any]:
    """A model's file, and an onnxruntime session on it; skips the test if either is missing."""
    runtime = pytest.importorskip("onnxruntime")
    path: Path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    runtime.set_default_logger_severity(3)
    return path, precise_session(str(path))


def drawn(session: Any, shapes: Shapes, seed: int) -> dict[str, Any]:
    """Inputs of these shapes; a dynamic dimension of any other input, such as a state, is the batch size."""
    draw, found = np.random.default_rng(seed), {}
    batch = next(iter(shapes.values()))[0] if shapes else 1
    for given in session.get_inputs():
        shape = shapes.get(given.name) or tuple(d if isinstance(d, int) else batch for d in given.shape)
        if given.type == "tensor(int64)":
            found[given.name] = np.full(shape, 16000, np.int64)  # a sampling rate
        elif given.type == "tensor(int32)":
            found[given.name] = draw.integers(0, 256, shape).astype(np.int32)
        else:
            found[given.name] = draw.normal(0, 0.3, shape).astype(np.float32)
    return found
