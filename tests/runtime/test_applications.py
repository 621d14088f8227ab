"""Applications written for ONNX Runtime run with only its import with_onert (`pip install .[applications,silero]`)."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED

import onert

MODELS = SHARED / "models" / "onnx"


def with_onert(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """The application's module, imported while `onnxruntime` is onert."""
    pytest.importorskip(name)
    for loaded in [one for one in sys.modules if one.split(".")[0] in (name, "onnxruntime")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "onnxruntime", onert)
    return importlib.import_module(name)


def test_magika_recognises_file_types(monkeypatch: pytest.MonkeyPatch) -> None:
    magika = with_onert(monkeypatch, "magika").Magika()
    text = b"def f(x):\n    return [x for x in range(10)]\n\nprint(f(3))\n" * 9
    assert magika.identify_bytes(text).output.label == "python"


@pytest.mark.long
def test_rapidocr_reads_text(monkeypatch: pytest.MonkeyPatch) -> None:
    cv2 = pytest.importorskip("cv2")
    engine = with_onert(monkeypatch, "rapidocr").RapidOCR()
    picture = np.full((120, 500, 3), 255, np.uint8)
    cv2.putText(picture, "HELLO 12345", (20, 80), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 4)
    found = engine(picture)
    assert " ".join(found.txts) == "HELLO 12345"
    assert min(found.scores) > 0.99


@pytest.mark.long
def test_openwakeword_hears_no_word_in_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("alexa_v0.1", "melspectrogram", "embedding_model")
    word, spectrum, embedding = (MODELS / f"openwakeword-0.4.0__{name}.onnx" for name in names)
    if not word.is_file():
        pytest.skip(f"{word} is not there")
    with_onert(monkeypatch, "openwakeword")
    model = importlib.import_module("openwakeword.model").Model(
        wakeword_models=[str(word)],
        inference_framework="onnx",
        melspec_model_path=str(spectrum),
        embedding_model_path=str(embedding),
    )
    sound = np.random.default_rng(0).normal(0, 2000, 48_000).astype(np.int16)
    scores = [next(iter(model.predict(sound[at : at + 1280]).values())) for at in range(0, 46_720, 1280)]
    assert len(scores) == 37
    assert max(scores) < 0.01


@pytest.mark.long
def test_silero_vad_matches_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("silero_vad")
    seconds = np.arange(48_000) / 16_000
    voice = sum(np.sin(2 * np.pi * 140 * k * seconds + k) / k for k in range(1, 30))
    sound = np.random.default_rng(0).normal(0, 0.002, 48_000) + voice * np.where(abs(seconds - 1.5) < 0.5, 0.3, 0)
    chunks = torch.tensor(sound, dtype=torch.float32).split(512)[:-1]

    def scores() -> list[float]:
        model = importlib.import_module("silero_vad").load_silero_vad(onnx=True)
        return [float(model(chunk, 16_000)) for chunk in chunks]

    theirs = scores()
    with_onert(monkeypatch, "silero_vad")
    mine = scores()
    assert max(theirs) > 5 * np.median(theirs)
    np.testing.assert_allclose(mine, theirs, atol=1e-5)
