"""Claims about what is made of files, numbers and times by the tools."""

from __future__ import annotations

import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiler.toy import Draft, ToyBackend, ToyScale
from PIL import Image

from onert.backend import TensorInfo
from onert.compiler import Options
from onert.ir import DType, Operand, Package, Quantization, Subgraphs, TensorType
from onert.ir.ops.control_flow.control import Call
from onert.runtime import measuring
from onert.runtime.details import operand_details
from onert.tools import contest, inputs
from onert.tools.classes import top_classes
from onert.tools.measure import Measurements


def info(dtype: DType, *shape: int | None, scale: float = 0.0, zero: int = 0) -> TensorInfo:
    return TensorInfo("x", dtype, shape, Quantization((scale,), (zero,)) if scale else None)


# ---- images


PIXELS = np.array([[[0, 10, 20], [30, 40, 50], [60, 70, 255]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]], np.uint8)
"""Two rows of three pixels."""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "x.png")
    return tmp_path / "x.png"


@pytest.mark.parametrize("shape", [(1, 2, 3, 3), (2, 3, 3)])
def test_an_image_of_the_right_size_keeps_its_pixels(picture: Path, shape: tuple[int, ...]) -> None:
    found = inputs.image(picture, info(DType.UINT8, *shape), None)
    np.testing.assert_array_equal(found, PIXELS.reshape(shape))


@pytest.mark.parametrize("shape", [(1, 2, 5), (2, 5), (2, 5, 1), (1, 2, 5, 1)])
def test_a_grey_image_has_one_channel_however_the_input_writes_it(tmp_path: Path, shape: tuple[int, ...]) -> None:
    grey = np.arange(10, dtype=np.uint8).reshape(2, 5) * 25
    Image.fromarray(grey).save(tmp_path / "grey.png")
    np.testing.assert_array_equal(
        inputs.image(tmp_path / "grey.png", info(DType.UINT8, *shape), None), grey.reshape(shape)
    )


@pytest.mark.parametrize(
    ("dtype", "mode", "black", "white"),
    [
        (DType.UINT8, None, 0, 255), (DType.INT8, None, -128, 127), (DType.FLOAT32, None, -1, 1),
        (DType.FLOAT32, "0to1", 0, 1), (DType.FLOAT32, "0to255", 0, 255), (DType.FLOAT32, "neg128to127", -128, 127),
        (DType.UINT8, "neg128to127", 0, 127), (DType.INT8, "0to255", 0, 127),
    ],
)  # fmt: skip
def test_black_and_white_are_the_ends_of_the_mode(
    tmp_path: Path, dtype: DType, mode: str | None, black: float, white: float
) -> None:
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "x.png")
    found = inputs.image(tmp_path / "x.png", info(dtype, 1, 1, 2, 1), mode)
    assert found.reshape(-1).tolist() == [black, white]


def test_real_pixels_are_quantised_where_the_input_is(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "x.png")
    found = inputs.image(tmp_path / "x.png", info(DType.INT8, 1, 1, 2, 1, scale=0.01, zero=5), "0to1")
    assert found.reshape(-1).tolist() == [5, 105]


# ---- sounds


def sound(path: Path, samples: list[int], width: int, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(np.array(samples, {1: np.uint8, 2: "<i2", 4: "<i4"}[width]).tobytes())
    return path


@pytest.mark.parametrize(
    ("width", "samples", "wanted"),
    [
        (1, [0, 128, 192, 255], [-1, 0, 0.5, 127 / 128]),
        (2, [-32768, 0, 16384], [-1, 0, 0.5]),
        (4, [-(1 << 31), 0, 1 << 30], [-1, 0, 0.5]),
    ],
)
def test_samples_of_any_width_lie_between_the_same_ends(
    tmp_path: Path, width: int, samples: list[int], wanted: list[float]
) -> None:
    found = inputs.sound(sound(tmp_path / "x.wav", samples, width), info(DType.FLOAT32, len(samples)))
    np.testing.assert_allclose(found, wanted, atol=1e-7)


@pytest.mark.parametrize(
    ("length", "wanted"), [(2, [0.5, 0.25]), (3, [0.5, 0.25, 0.125]), (5, [0.5, 0.25, 0.125, 0, 0])]
)
def test_a_sound_s_first_channel_is_cut_or_followed_by_silence(
    tmp_path: Path, length: int, wanted: list[float]
) -> None:
    stereo = [16384, -1, 8192, -2, 4096, -3]
    found = inputs.sound(sound(tmp_path / "x.wav", stereo, 2, 2), info(DType.FLOAT32, 1, length))
    assert found.tolist() == [wanted]


# ---- classes, times


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["a", "b", "c"], ["c", "a"]), (["b", "c"], ["c", "background"]), ([], ["", ""]), (["a"], ["", "a"]),
    ],
)  # fmt: skip
def test_labels_are_for_the_classes_from_the_back(labels: list[str], wanted: list[str]) -> None:
    found = top_classes(info(DType.FLOAT32, 3), np.float32([0.3, 0.1, 0.6]), 2, labels)
    assert [(row["class"], row["label"]) for row in found] == [(2, wanted[0]), (0, wanted[1])]


def test_scores_are_real_numbers_and_the_first_of_equals_comes_first() -> None:
    found = top_classes(info(DType.UINT8, 4, scale=0.25, zero=8), np.uint8([8, 12, 12, 10]), 3, [])
    assert [(row["class"], row["score"]) for row in found] == [(1, 1.0), (2, 1.0), (3, 0.5)]


def test_statistics_are_those_of_the_runs() -> None:
    found = Measurements(runs=[1.0, 2.0, 4.0]).statistics
    assert found["geomean"] == pytest.approx(2.0)
    assert found["mean"] == pytest.approx(7 / 3)
    assert (found["min"], found["max"], found["runs"]) == (1.0, 4.0, 3)


class Clock:
    """Stands for `time`: calls move it on."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_a_contest_takes_turns_and_says_how_many_times_faster_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, order = Clock(), []
    monkeypatch.setattr(contest, "time", clock)

    def contestant(name: str, seconds: float) -> contest.Contestant:
        def call() -> None:
            order.append(name)
            clock.now += seconds

        return contest.Contestant(name, call)

    fast, slow = contest.contest([contestant("fast", 0.01), contestant("slow", 0.03)], 6, round_seconds=0.01)
    assert fast.ratio(slow) == pytest.approx(3.0)
    assert slow.ratio(fast) == pytest.approx(1 / 3)
    rounds = [name for at, name in enumerate(order[4:]) if not at or order[4:][at - 1] != name]
    assert rounds == ["fast", "slow", "fast", "slow", "fast", "slow", "fast"]  # turned round every other time
    assert math.isclose(fast.median, 0.01)


def test_the_first_copy_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(measuring, "time", clock)
    taken = iter([9.0, 1e-6, 3e-6])

    class Slow(type(ToyBackend("x").memory)):  # type: ignore[misc]
        name = "slow"

        def copy_in(self, source: Any, target: Any, type_: Any) -> None:
            super().copy_in(source, target, type_)
            clock.now += next(taken)

    target = ToyBackend("target", memory=Slow())
    assert measuring._copy(ToyBackend("source"), target, 1024, 2) == pytest.approx(2.0)


def test_what_runs_others_is_not_measured_itself() -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(3.0), inner.input(4)))
    d = Draft()
    top = d.uninferred(d.op(Call(1), d.op(ToyScale(2.0), d.input(4, name="x"))))
    outcome = measuring.measure(
        Package((Subgraphs((top, body)),)), [ToyBackend("one")], Options(num_threads=1, optimize=False), runs=1
    )
    assert {name.partition("(")[0] for _, name, *_ in outcome.measurements} == {"ToyScale"}


def test_equal_operations_are_measured_once() -> None:
    d = Draft()
    x = d.input(4, name="x")
    for factor in (2.0, 2.0, 3.0):
        x = d.op(ToyScale(factor), x)
    outcome = measuring.measure(
        Package((Subgraphs((d.graph(x),)),)), [ToyBackend("one")], Options(num_threads=1, optimize=False), runs=1
    )
    assert len(outcome.measurements) == 4  # two operations, each by its own name and by its kind's


# ---- details


@pytest.mark.parametrize(
    ("quantization", "pair", "scales"),
    [
        (None, (0.0, 0), []),
        (Quantization((0.5,), (3,)), (0.5, 3), [0.5]),
        (Quantization((0.5, 0.25), (0, 0), 0), (0.0, 0), [0.5, 0.25]),
    ],
)
def test_details_of_a_tensor_say_its_shape_and_its_scales(
    quantization: Quantization | None, pair: tuple[float, int], scales: list[float]
) -> None:
    found = operand_details(7, Operand(TensorType(DType.INT8, (2, None), quantization), "t"), None)
    assert found["shape"].tolist() == [2, 1]
    assert found["shape_signature"].tolist() == [2, -1]
    assert found["quantization"] == pair
    assert found["quantization_parameters"]["scales"].tolist() == scales
