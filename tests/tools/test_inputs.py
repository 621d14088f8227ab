"""Conversion of image and sound files to inputs, and the tools' statistics and measurements."""

from __future__ import annotations

import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from compiler.toy import Draft, ToyBackend, ToyScale
from PIL import Image
from shared_material import REPOSITORY

import onert
from onert.backend import TensorInfo
from onert.compiler import Options
from onert.exec.observers import ProfileRow
from onert.ir import DType, Operand, Package, Quantization, Subgraphs, TensorType
from onert.ir.ops.control_flow.control import Call
from onert.runtime import measuring
from onert.runtime.details import operand_details
from onert.tools import contest, inputs
from onert.tools.inputs import ReadSettings
from onert.tools.reports.measure import Measurements
from onert.tools.reports.slowness import runs_slowly, slowness


def info(dtype: DType, *shape: int | None, scale: float = 0.0, zero: int = 0) -> TensorInfo:
    return TensorInfo("x", dtype, shape, Quantization((scale,), (zero,)) if scale else None)


# ---- images


PIXELS = np.array([[[0, 10, 20], [30, 40, 50], [60, 70, 255]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]], np.uint8)
"""An image of two rows of three pixels."""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "x.png")
    return tmp_path / "x.png"


@pytest.mark.parametrize("shape", [(1, 2, 3, 3), (2, 3, 3)])
def test_the_pixels_of_an_image_of_the_right_size_are_unchanged(picture: Path, shape: tuple[int, ...]) -> None:
    found = inputs.image(picture, info(DType.UINT8, *shape), ReadSettings()).array
    np.testing.assert_array_equal(found, PIXELS.reshape(shape))


@pytest.mark.parametrize("shape", [(1, 2, 5), (2, 5), (2, 5, 1), (1, 2, 5, 1)])
def test_a_grey_image_fits_inputs_with_and_without_a_channel_dimension(tmp_path: Path, shape: tuple[int, ...]) -> None:
    grey = np.arange(10, dtype=np.uint8).reshape(2, 5) * 25
    Image.fromarray(grey).save(tmp_path / "grey.png")
    np.testing.assert_array_equal(
        inputs.image(tmp_path / "grey.png", info(DType.UINT8, *shape), ReadSettings()).array, grey.reshape(shape)
    )


@pytest.mark.parametrize(
    ("dtype", "mode", "black", "white"),
    [
        (DType.UINT8, None, 0, 255), (DType.INT8, None, -128, 127), (DType.FLOAT32, None, 0, 1),
        (DType.FLOAT32, "neg1to1", -1, 1), (DType.FLOAT32, "0to255", 0, 255), (DType.FLOAT32, "neg128to127", -128, 127),
        (DType.UINT8, "neg128to127", 0, 127), (DType.INT8, "0to255", 0, 127),
    ],
)  # fmt: skip
def test_black_and_white_map_to_the_ends_of_the_mode_s_range(
    tmp_path: Path, dtype: DType, mode: str | None, black: float, white: float
) -> None:
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "x.png")
    found = inputs.image(tmp_path / "x.png", info(dtype, 1, 1, 2, 1), ReadSettings(mode)).array
    assert found.reshape(-1).tolist() == [black, white]


def test_pixels_are_quantised_for_a_quantised_input(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "x.png")
    found = inputs.image(
        tmp_path / "x.png", info(DType.INT8, 1, 1, 2, 1, scale=0.01, zero=5), ReadSettings("0to1")
    ).array
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
def test_samples_of_any_width_are_scaled_to_the_same_range(
    tmp_path: Path, width: int, samples: list[int], wanted: list[float]
) -> None:
    found = inputs.sound(
        sound(tmp_path / "x.wav", samples, width), info(DType.FLOAT32, len(samples)), ReadSettings()
    ).array
    np.testing.assert_allclose(found, wanted, atol=1e-7)


@pytest.mark.parametrize(
    ("length", "wanted"), [(2, [0.5, 0.25]), (3, [0.5, 0.25, 0.125]), (5, [0.5, 0.25, 0.125, 0, 0])]
)
def test_the_first_channel_of_a_sound_is_cut_or_padded_with_silence(
    tmp_path: Path, length: int, wanted: list[float]
) -> None:
    stereo = [16384, -1, 8192, -2, 4096, -3]
    found = inputs.sound(sound(tmp_path / "x.wav", stereo, 2, 2), info(DType.FLOAT32, 1, length), ReadSettings())
    assert found.array.tolist() == [wanted]


AS_IT_IS = "not resampled from 8000 Hz, because the model's sample rate is unknown (--sample-rate sets it)"
SOUNDS: dict[str, tuple[int, tuple[int | None, ...], ReadSettings, str]] = {
    "as it is": (8, (8,), ReadSettings(), AS_IT_IS),
    "at the model's rate": (8, (1, 8), ReadSettings(sample_rate=8000), ""),
    "faster": (8, (16,), ReadSettings(sample_rate=16000), "resampled from 8000 to 16000 Hz"),
    "slower": (8, (1, 4, 1), ReadSettings(sample_rate=4000), "resampled from 8000 to 4000 Hz"),
    "too short": (8, (12,), ReadSettings(sample_rate=8000), "8 samples and 4 of silence"),
    "too long": (80, (8,), ReadSettings(sample_rate=8000), "0.001 of 0.010 s"),
    "a later part": (80, (8,), ReadSettings(sample_rate=8000, start=0.005), "0.001 of 0.010 s, starting at 0.005 s"),
    "of any length": (80, (1, None), ReadSettings(sample_rate=8000), ""),
}


@pytest.mark.parametrize(("count", "shape", "reading", "says"), SOUNDS.values(), ids=SOUNDS.keys())
def test_sound_processing_is_described(
    tmp_path: Path, count: int, shape: tuple[int | None, ...], reading: ReadSettings, says: str
) -> None:
    file = sound(tmp_path / "x.wav", [0] * count, 2)
    found = inputs.sound(file, info(DType.FLOAT32, *shape), reading)
    assert found.source == ", ".join(filter(None, (str(file), says)))
    assert found.array.shape == tuple(count if d is None else d for d in shape)


@pytest.mark.parametrize("rate", [4000, 8000, 16000, 11025])
def test_resampling_preserves_the_pitch_of_a_tone(tmp_path: Path, rate: int) -> None:
    tone = np.sin(2 * np.pi * 500 * np.arange(800) / 8000)
    file = sound(tmp_path / "x.wav", np.int16(tone * 16384).tolist(), 2)
    found = inputs.sound(file, info(DType.FLOAT32, None), ReadSettings(sample_rate=rate)).array
    wanted = np.sin(2 * np.pi * 500 * np.arange(len(found)) / rate) / 2
    middle = slice(len(found) // 4, 3 * len(found) // 4)
    np.testing.assert_allclose(found[middle], wanted[middle], atol=0.02)


def test_16_bit_inputs_get_the_samples_unscaled(tmp_path: Path) -> None:
    file = sound(tmp_path / "x.wav", [-32768, -3, 32767], 2)
    assert inputs.sound(file, info(DType.INT16, 3), ReadSettings()).array.tolist() == [-32768, -3, 32767]


def test_a_picture_of_one_row_is_not_transposed(tmp_path: Path) -> None:
    pixels = np.arange(15, dtype=np.uint8).reshape(1, 5, 3) * 17
    Image.fromarray(pixels).save(tmp_path / "row.png")
    found = inputs.image(tmp_path / "row.png", info(DType.UINT8, 1, 5, 3), ReadSettings()).array
    np.testing.assert_array_equal(found, pixels)


@pytest.mark.parametrize("shape", [(1, 3, 2, 5), (3, 2, 5), (1, 1, 2, 5)])
def test_images_fit_inputs_with_channels_first(tmp_path: Path, shape: tuple[int, ...]) -> None:
    pixels = np.arange(30, dtype=np.uint8).reshape(2, 5, 3)
    Image.fromarray(pixels if shape[-3] == 3 else pixels[..., 0]).save(tmp_path / "x.png")
    found = inputs.image(tmp_path / "x.png", info(DType.UINT8, *shape), ReadSettings()).array
    np.testing.assert_array_equal(found, np.moveaxis(pixels[..., : shape[-3]], 2, 0).reshape(shape))


# ---- times


SLOWNESS = {
    "asked for": (("reference",), None),
    "nothing named": ((), ": no other backend supports them"),
    "no code": (("builtin",), "; --backends \"llvm\" runs them on 'llvm'"),
    "a stranger's": (("onert_acme:Acme",), "; --backends \"onert_acme:Acme;llvm\" runs them on 'llvm'"),
}


@pytest.mark.parametrize(("backends", "advice"), SLOWNESS.values(), ids=SLOWNESS.keys())
def test_running_on_the_slow_backend_is_reported_with_a_remedy(backends: tuple[str, ...], advice: str | None) -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_float")
    options = Options(backends=backends)
    program = onert.compile(package, evolve(options, backends=("builtin",) if advice else backends))
    assert runs_slowly(program, options) == (advice is not None)
    if advice is not None:
        rows = (ProfileRow("x", "reference", 1, 1.0, 0.75, 0, 0, 0.0, 0.0),)
        text = slowness(program, rows, options)
        assert "operations run in NumPy on 'reference', 75% of the time" in text
        assert text.endswith(advice)


def test_statistics_summarise_the_runs() -> None:
    found = Measurements(runs=[1.0, 2.0, 4.0]).statistics
    assert found["geomean"] == pytest.approx(2.0)
    assert found["mean"] == pytest.approx(7 / 3)
    assert (found["min"], found["max"], found["runs"]) == (1.0, 4.0, 3)


class Clock:
    """A fake of the module `time`, advanced by the tests."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_a_contest_alternates_and_reports_the_speed_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert rounds == [
        "fast",
        "slow",
        "fast",
        "slow",
        "fast",
        "slow",
        "fast",
    ]  # the order is reversed in every other round
    assert math.isclose(fast.median, 0.01)


def test_the_first_copy_is_excluded_from_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_operations_that_call_subgraphs_are_not_measured_themselves() -> None:
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
    assert len(outcome.measurements) == 4  # two different operations, each under its own name and its kind's


# ---- details


@pytest.mark.parametrize(
    ("quantization", "pair", "scales"),
    [
        (None, (0.0, 0), []),
        (Quantization((0.5,), (3,)), (0.5, 3), [0.5]),
        (Quantization((0.5, 0.25), (0, 0), 0), (0.0, 0), [0.5, 0.25]),
    ],
)
def test_tensor_details_have_shape_and_scales(
    quantization: Quantization | None, pair: tuple[float, int], scales: list[float]
) -> None:
    found = operand_details(7, Operand(TensorType(DType.INT8, (2, None), quantization), "t"), None)
    assert found["shape"].tolist() == [2, 1]
    assert found["shape_signature"].tolist() == [2, -1]
    assert found["quantization"] == pair
    assert found["quantization_parameters"]["scales"].tolist() == scales
