"""Real ONNX models compiled once match onnxruntime at several shapes, and recurrent ones do so over many steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_peer import Shapes, drawn, session_of

import onert

BOUND = 1e-4
"""Relative to the largest magnitude of an output."""
STEPS = 10

VOICE = ({"input": (1, 512)}, {"input": (3, 512)}, {"input": (2, 256)})
SHAPES: dict[str, tuple[Shapes, ...]] = {
    "basic_pitch-0.4.0__nmp": tuple({"serving_default_input_2:0": (n, 43844, 1)} for n in (1, 3, 2)),
    "faster_whisper-1.2.1__silero_vad_v6": tuple({"input": (n, 576)} for n in (1, 7, 3)),
    "magika-1.0.3__model": tuple({"bytes": (n, 2048)} for n in (1, 3, 2)),
    "nudenet-3.4.2__320n": tuple({"images": (n, 3, h, w)} for n, h, w in ((1, 160, 128), (2, 96, 96), (1, 320, 256))),
    "openwakeword-0.4.0__embedding_model": tuple({"input_1": (n, 76, 32, 1)} for n in (1, 4, 2)),
    "openwakeword-0.4.0__hey_mycroft_v0.1": tuple({"input_1": (n, 16, 96)} for n in (1, 4, 2)),
    "openwakeword-0.4.0__melspectrogram": tuple({"input": shape} for shape in ((1, 16000), (2, 8000), (1, 12345))),
    "openwakeword-0.4.0__silero_vad": ({"input": (1, 512)}, {"input": (3, 1024)}, {"input": (2, 1536)}),
    "pipecat_ai-1.14.0__smart-turn-v3.2-cpu": tuple({"input_features": (n, 80, 800)} for n in (1, 3, 2)),
    "rapidocr-3.10.0__PP-OCRv6_det_small": tuple(
        {"x": (n, 3, h, w)} for n, h, w in ((1, 96, 128), (2, 64, 64), (1, 320, 160))
    ),
    "rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile": tuple(
        {"x": (n, 3, h, w)} for n, h, w in ((2, 48, 96), (1, 48, 192), (3, 64, 64))
    ),
    "ricky0123-vad-web-0.0.31__silero_vad_v5": VOICE,
    "silero_vad-6.2.3__silero_vad": VOICE,
    "silero_vad-6.2.3__silero_vad_16k_op15": (*VOICE[:2], {"input": (2, 512)}),
    "silero_vad-6.2.3__silero_vad_16k_sequence": tuple({"input": (n, 576)} for n in (1, 7, 3)),
    "silero_vad-6.2.3__silero_vad_half": (*VOICE[:2], {"input": (2, 512)}),
    "silero_vad-6.2.3__silero_vad_op18_ifless": VOICE,
}
"""Models with dynamic dimensions, and shapes for one input that has them; the states' shapes follow from it."""
FOLLOWS = {"state": "stateN", "h": "hn", "c": "cn"}
"""Inputs that are an output of the previous step, and that output."""
RECURRENT = (
    "faster_whisper-1.2.1__silero_vad_v6",
    "openwakeword-0.4.0__silero_vad",
    "ricky0123-vad-web-0.0.31__silero_vad_v5",
    "silero_vad-6.2.3__silero_vad",
    "silero_vad-6.2.3__silero_vad_16k_op15",
    "silero_vad-6.2.3__silero_vad_16k_sequence",
    "silero_vad-6.2.3__silero_vad_half",
    "silero_vad-6.2.3__silero_vad_op18_ifless",
    "silero_vad-6.2.3__silero_vad_openvino_16k",
)
LEAST = {"rapidocr-3.10.0__PP-OCRv6_det_small": 1.0, "pipecat_ai-1.14.0__smart-turn-v3.2-cpu": 37.0}
"""Ranges of outputs whose values do not show them: probabilities that are tiny for noise; and values computed from
bytes, where the last bit of a float decides how a tie is rounded and later layers amplify that. ONNX Runtime's own
results with and without its optimisations differ by up to 3.7e-3 there (six batches of noise)."""
SHORT = ("openwakeword-0.4.0__hey_mycroft_v0.1", "silero_vad-6.2.3__silero_vad_16k_sequence")
"""Models that run in the default suite."""


def both(name: str) -> tuple[Any, onert.Execution]:
    """onnxruntime's session, and one execution of a program that is compiled once."""
    path, session = session_of(name)
    return session, onert.Execution(onert.compile(onert.load(path), num_threads=1))


def require_close(mine: dict[str, Any], theirs: dict[str, Any], what: object, least: float = 1e-3) -> None:
    """Check that outputs differ by at most `BOUND` of their largest magnitude, which counts as at least `least`."""
    assert list(mine) == list(theirs)
    for name, wanted in theirs.items():
        found = np.asarray(mine[name])
        assert found.shape == wanted.shape, (what, name)
        assert np.abs(found - wanted).max() <= BOUND * max(float(np.abs(wanted).max()), least), (what, name)


def _params(names: Any) -> list[Any]:
    return [pytest.param(name, marks=() if name in SHORT else pytest.mark.long, id=name) for name in names]


@pytest.mark.parametrize("name", _params(SHAPES))
def test_one_program_serves_every_shape(name: str) -> None:
    session, execution = both(name)
    outputs = [o.name for o in session.get_outputs()]
    for seed, shapes in enumerate((*SHAPES[name], SHAPES[name][0])):
        inputs = drawn(session, shapes, seed)
        theirs = dict(zip(outputs, session.run(None, inputs), strict=True))
        require_close(execution.run(inputs), theirs, shapes, LEAST.get(name, 1e-3))


@pytest.mark.parametrize("name", _params(RECURRENT))
def test_states_stay_close_over_ten_steps(name: str) -> None:
    session, execution = both(name)
    outputs = [o.name for o in session.get_outputs()]
    shapes = (SHAPES.get(name) or ({},))[0]
    states: list[dict[str, Any]] = [{}, {}]
    for step in range(STEPS):
        inputs = drawn(session, shapes, step)
        mine = execution.run({**inputs, **states[0]})
        theirs = dict(zip(outputs, session.run(None, {**inputs, **states[1]}), strict=True))
        require_close(mine, theirs, step)
        states = [
            {to: np.asarray(results[source]).copy() for to, source in FOLLOWS.items() if to in inputs}
            for results in (mine, theirs)
        ]
