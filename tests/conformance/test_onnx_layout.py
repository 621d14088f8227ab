"""Convolutional models with channels first run without moving activations between their layers.

In the compiled programs no transpose between the first and the last layer moves an element, no padding is copied, and
no operation is left to a backend that is not native.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.test_onnx_models import ROWS as EVERY
from shared_material import SHARED

import onert
from onert.compiler.rewrite.layouts import moves_nothing
from onert.ir import Operation, Subgraph
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.slicing import MirrorPad, Pad

MODELS = SHARED / "models" / "onnx"
LAYERS = (Conv2D, DepthwiseConv2D, TransposeConv2D, Conv3D, TransposeConv3D, FullyConnected)
ROWS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("rapidocr-3.10.0__PP-OCRv6_det_small", {"x": (1, 3, 96, 160)}),
    ("rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile", {"x": (2, 3, 48, 96)}),
    ("nudenet-3.4.2__320n", {"images": (1, 3, 160, 128)}),
    ("openwakeword-0.4.0__embedding_model", {"input_1": (2, 76, 32, 1)}),
    ("openwakeword-0.4.0__melspectrogram", {"input": (1, 16000)}),
    ("magika-1.0.3__model", {"bytes": (2, 2048)}),
    ("silero_vad-6.2.3__silero_vad_16k_sequence", {"input": (3, 576)}),
    ("faster_whisper-1.2.1__silero_vad_v6", {"input": (3, 576)}),
]
"""Models, and the shapes of inputs with unknown dimensions."""
LONG = ("nudenet", "faster_whisper", "magika")


def _copies(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether an operation copies elements for the sake of layout: a transpose that moves something, or padding."""
    if isinstance(operation.op, Transpose):
        x, order = subgraph.types(operation).inputs
        assert x is not None
        return order is None or order.value is None or not moves_nothing(x.shape, tuple(int(a) for a in order.value))
    return isinstance(operation.op, Pad | MirrorPad)


def _compiled(name: str, shapes: dict[str, tuple[int, ...]]) -> onert.Program:
    path: Path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return onert.compile(onert.load(path), input_shapes=shapes)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [pytest.param(*row, id=row[0], marks=pytest.mark.long if row[0].startswith(LONG) else ()) for row in ROWS],
)
def test_no_activation_is_copied_between_the_layers_of_a_model(name: str, shapes: dict[str, tuple[int, ...]]) -> None:
    layers = 0
    for routine in _compiled(name, shapes).routines:
        operations = routine.subgraph.operations
        places = [at for at, o in enumerate(operations) if isinstance(o.op, LAYERS)]
        layers += len(places)
        body = operations[places[0] : places[-1]] if places else ()
        assert [o.op.label for o in body if _copies(routine.subgraph, o)] == []
        assert {step.backend for step in routine.steps} <= {"llvm"}
    assert layers


MORE: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("openwakeword-0.4.0__hey_marvin_v0.1", {}),
    ("pipecat_ai-1.14.0__smart-turn-v3.2-cpu", {"input_features": (1, 80, 800)}),
    ("rapidocr-3.10.0__PP-OCRv6_det_small", {"x": (1, 3, 96, 160)}),
]
"""Models that the other tests compare only at several shapes."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "shapes"), [pytest.param(*row, id=row[0]) for row in [*((n, s) for n, s, _ in EVERY), *MORE]]
)
def test_every_operation_of_a_model_is_native(name: str, shapes: dict[str, tuple[int, ...]]) -> None:
    program = _compiled(name, shapes)
    assert {step.backend for routine in program.routines for step in routine.steps} == {"llvm"}
