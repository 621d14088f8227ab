"""Real ONNX models match onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_peer import Shapes, drawn, session_of

import onert

ROWS: list[tuple[str, Shapes, float]] = [
    ("basic_pitch-0.4.0__nmp", {"serving_default_input_2:0": (1, 43844, 1)}, 1e-4),
    ("faster_whisper-1.2.1__silero_vad_v6", {"input": (3, 576)}, 1e-4),
    ("magika-1.0.3__model", {"bytes": (2, 2048)}, 1e-4),
    ("nudenet-3.4.2__320n", {"images": (1, 3, 160, 128)}, 1e-4),
    ("openwakeword-0.4.0__alexa_v0.1", {}, 1e-4),
    ("openwakeword-0.4.0__embedding_model", {"input_1": (2, 76, 32, 1)}, 1e-4),
    ("openwakeword-0.4.0__hey_jarvis_v0.1", {}, 1e-4),
    ("openwakeword-0.4.0__hey_mycroft_v0.1", {"input_1": (2, 16, 96)}, 1e-4),
    ("openwakeword-0.4.0__melspectrogram", {"input": (1, 16000)}, 1e-4),
    ("openwakeword-0.4.0__silero_vad", {"input": (1, 512), "h": (2, 1, 64), "c": (2, 1, 64)}, 1e-4),
    ("openwakeword-0.4.0__timer_v0.1", {}, 1e-4),
    ("openwakeword-0.4.0__weather_v0.1", {}, 1e-4),
    ("rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile", {"x": (2, 3, 48, 96)}, 1e-4),
    ("ricky0123-vad-web-0.0.31__silero_vad_v5", {"input": (1, 512), "state": (2, 1, 128)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad", {"input": (1, 512), "state": (2, 1, 128)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad_16k_op15", {"input": (1, 512), "state": (2, 1, 128)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad_16k_sequence", {"input": (3, 576)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad_half", {"input": (1, 512), "state": (2, 1, 128)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad_op18_ifless", {"input": (1, 512), "state": (2, 1, 128)}, 1e-4),
    ("silero_vad-6.2.3__silero_vad_openvino_16k", {}, 1e-4),
]
"""Models, the shapes of inputs with unknown dimensions, and the bound on differences as a fraction of the range."""
LONG = ("basic_pitch", "nudenet", "rapidocr", "ricky0123", "silero_vad-6.2.3__silero_vad_half")


@pytest.mark.parametrize(
    ("name", "shapes", "bound"),
    [pytest.param(*row, id=row[0], marks=pytest.mark.long if row[0].startswith(LONG) else ()) for row in ROWS],
)
def test_a_model_matches_onnxruntime(name: str, shapes: Shapes, bound: float) -> None:
    path, session = session_of(name)
    inputs = drawn(session, shapes, 1)
    expected = dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs), strict=True))
    results = onert.Execution(onert.compile(onert.load(path))).run(inputs)
    assert list(results) == list(expected)
    for key, theirs in expected.items():
        mine = np.asarray(results[key])
        assert mine.shape == theirs.shape
        assert np.abs(mine - theirs).max() <= bound * max(float(np.abs(theirs).max()), 1e-3)
