"""Pictures, videos, sounds, texts and folders as inputs, as users have them, and the limits on their sizes."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from PIL import Image

from onert.backend import TensorInfo
from onert.frontend.metadata import TensorMetadata
from onert.ir import CallTypes, DType, ExecutionError, TensorType
from onert.tools.inputs import IMAGES, Fit, InputValue, ReadSettings, folders, stream, text
from onert.tools.inputs.images import from_picture
from onert.tools.inputs.pictures import Picture, decode
from onert.tools.outputs.printing import printed_outputs

Shell = Callable[..., tuple[int, str, str]]


def info(dtype: DType, *shape: int | None) -> TensorInfo:
    return TensorInfo("x", dtype, shape)


# ---- pictures

HALVES = np.zeros((4, 6, 3), np.uint8)
HALVES[:2, :3] = (250, 0, 0)
"""An image that is red in its upper left quarter."""
QUARTERS = {1: (0, 0), 2: (0, 1), 3: (1, 1), 4: (1, 0), 5: (0, 0), 6: (0, 1), 7: (1, 1), 8: (1, 0)}
"""By EXIF orientation, the quarter (row, column) in which the stored upper left quarter is shown."""


@pytest.mark.parametrize("orientation", QUARTERS)
def test_a_photo_is_rotated_by_its_exif_orientation(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(HALVES).save(tmp_path / "x.png", exif=exif)
    found = decode(tmp_path / "x.png", "x.png")
    height, width = found.size
    assert (height, width) == ((4, 6) if orientation < 5 else (6, 4))
    below, right = QUARTERS[orientation]
    red = found.rgb[..., 0] > 200
    assert red[below * height // 2 : (below + 1) * height // 2, right * width // 2 : (right + 1) * width // 2].all()
    assert red.sum() == 6
    assert bool(found.said) == (orientation != 1)


def _sixteen(folder: Path, suffix: str) -> Path:
    deep = np.array([[0, 0x8000, 0xFFFF]], np.uint16)
    Image.fromarray(deep).save(folder / f"x{suffix}")
    return folder / f"x{suffix}"


def _saved(folder: Path, name: str, image: Any, **options: Any) -> Path:
    image.save(folder / name, **options)
    return folder / name


PICTURES: dict[str, tuple[Callable[[Path], Path], list[tuple[int, int, int]]]] = {
    "16 bits of PNG": (lambda f: _sixteen(f, ".png"), [(0, 0, 0), (128, 128, 128), (255, 255, 255)]),
    "16 bits of TIFF": (lambda f: _sixteen(f, ".tif"), [(0, 0, 0), (128, 128, 128), (255, 255, 255)]),
    "reals of TIFF": (
        lambda f: _saved(f, "x.tif", Image.fromarray(np.float32([[0, 0.5, 1]]))),
        [(0, 0, 0), (128, 128, 128), (255, 255, 255)],
    ),
    "grey": (lambda f: _saved(f, "x.png", Image.fromarray(np.uint8([[0, 7, 9]]))), [(0, 0, 0), (7, 7, 7), (9, 9, 9)]),
    "transparent on white": (
        lambda f: _saved(f, "x.png", Image.fromarray(np.uint8([[[9, 9, 9, 0], [9, 9, 9, 255], [0, 0, 0, 128]]]))),
        [(255, 255, 255), (9, 9, 9), (127, 127, 127)],
    ),
    "a palette": (
        lambda f: _saved(f, "x.gif", Image.fromarray(np.uint8([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]))),
        [(255, 0, 0), (0, 255, 0), (0, 0, 255)],
    ),
    "black and white": (
        lambda f: _saved(f, "x.png", Image.fromarray(np.array([[True, False, True]]))),
        [(255, 255, 255), (0, 0, 0), (255, 255, 255)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "wanted"), PICTURES.values(), ids=PICTURES.keys())
def test_pictures_of_every_kind_are_decoded_to_8_bits_per_channel(
    tmp_path: Path, make: Callable[[Path], Path], wanted: list[tuple[int, int, int]]
) -> None:
    path = make(tmp_path)
    assert [tuple(pixel) for pixel in decode(path, "x").rgb[0].tolist()] == wanted


def _bomb(width: int, height: int) -> bytes:
    """A PNG that declares a size and has almost no data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "content", [_bomb(50_000, 50_000), _bomb(2_000_000, 1000), _bomb(100, 100), b"\x89PNG\r\n\x1a\n"]
)
def test_pictures_that_are_too_large_or_truncated_are_rejected(content: bytes) -> None:
    with pytest.raises(ExecutionError, match=r"^x.png (has .* pixels, expected at most|cannot be read as an image)"):
        decode(content, "x.png")


FITS: dict[Fit, tuple[list[int], str]] = {
    Fit.STRETCH: ([200, 200, 200, 200], "from 8x4 to 4x4,"),
    Fit.LETTERBOX: ([114, 200, 200, 114], "keeping the aspect ratio, and padded"),
    Fit.CROP: ([200, 200, 200, 200], "keeping the aspect ratio, and cropped"),
}


@pytest.mark.parametrize(("fit", "wanted"), FITS.items(), ids=lambda v: v.value if isinstance(v, Fit) else "")
def test_a_picture_of_another_aspect_ratio_is_fitted_as_requested(fit: Fit, wanted: tuple[list[int], str]) -> None:
    pixels = np.full((4, 8, 4), 255, np.uint8)
    pixels[..., :3] = 200
    found = from_picture(Picture("x", pixels), info(DType.UINT8, 1, 4, 4, 3), ReadSettings(fit=fit))
    assert found.array[0, :, 0, 0].tolist() == wanted[0]
    assert wanted[1] in found.source


def test_an_input_of_dynamic_size_takes_the_size_of_the_picture() -> None:
    picture = Picture("x", np.zeros((100, 50, 4), np.uint8))
    assert from_picture(picture, info(DType.FLOAT32, 1, 3, None, None), ReadSettings()).array.shape == (1, 3, 96, 64)
    given = from_picture(picture, info(DType.FLOAT32, None, None, None, 3), ReadSettings(image_size=(320, 640)))
    assert given.array.shape == (1, 320, 640, 3)


def test_pixels_are_normalised_by_the_metadata_unless_a_mode_is_given() -> None:
    picture, target = Picture("x", np.full((2, 2, 4), 255, np.uint8)), info(DType.FLOAT32, 1, 2, 2, 3)
    said = TensorMetadata(mean=(5, 55, 155), deviation=(1, 2, 4))
    found = from_picture(picture, target, ReadSettings(said=said))
    assert found.array[0, 0, 0].tolist() == [250, 100, 25]
    assert found.source.endswith("pixels as (p - [5, 55, 155]) / [1, 2, 4], as the model's metadata says")
    assert from_picture(picture, target, ReadSettings("0to1", said=said)).array[0, 0, 0].tolist() == [1, 1, 1]
    torch = from_picture(picture, target, ReadSettings("imagenet")).array[0, 0, 0].tolist()
    assert torch == pytest.approx([2.2489, 2.4286, 2.64], abs=1e-3)


# ---- folders, standard input, texts


def test_the_readable_files_of_a_folder_are_read_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b.png", "a.PNG", ".hidden.png", "notes.md"):
        Image.fromarray(np.full((2, 2), len(name), np.uint8)).save(tmp_path / name, "png")
    (tmp_path / "c.png").mkdir()
    found = stream([str(tmp_path)], info(DType.UINT8, 1, 2, 2, 1), ReadSettings())
    assert found.count == 2
    assert [Path(given.source.partition(",")[0]).name for given in found.items] == ["a.PNG", "b.png"]


def test_a_folder_with_too_many_files_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in range(5):
        (tmp_path / f"{name}.png").touch()
    monkeypatch.setattr(folders, "MAX_ENTRIES", 4)
    with pytest.raises(ExecutionError, match="has more than 4 entries, expected at most that many"):
        folders.files_in(tmp_path, IMAGES)


TEXTS: dict[str, tuple[bytes, tuple[int | None, ...], list[bytes] | str]] = {
    "one element": (b"two\nlines\n", (1,), [b"two\nlines"]),
    "a scalar": (b"word\r\n", (), [b"word"]),
    "a line for each": (b"one\ntwo\n", (1, 2), [b"one", b"two"]),
    "as many as there are": (b"one\ntwo\nthree", (None,), [b"one", b"two", b"three"]),
    "nothing": (b"", (None,), []),
    "too few": (b"one", (2,), "x has 1 lines, but input 'x' has shape [2], expected a line for each element"),
}


@pytest.mark.parametrize(("content", "shape", "wanted"), TEXTS.values(), ids=TEXTS.keys())
def test_text_is_split_into_strings(content: bytes, shape: tuple[int | None, ...], wanted: list[bytes] | str) -> None:
    if isinstance(wanted, str):
        with pytest.raises(ExecutionError) as caught:
            text(content, "x", info(DType.STRING, *shape))
        assert str(caught.value) == wanted
    else:
        assert text(content, "x", info(DType.STRING, *shape)).array.reshape(-1).tolist() == wanted


class _Piped:
    """A fake standard input."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


def _wave(samples: list[int]) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.int16(samples).tobytes())
    return out.getvalue()


def _png(array: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.uint8(array)).save(out, "png")
    return out.getvalue()


def _npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


PIPED: dict[str, tuple[bytes, TensorInfo, list[Any]]] = {
    "a picture": (_png([[0, 255], [255, 0]]), info(DType.UINT8, 1, 2, 2, 1), [0, 255, 255, 0]),
    "a sound": (_wave([0, 16384]), info(DType.FLOAT32, 2), [0, 0.5]),
    "a tensor": (_npy(np.float32([1, 2])), info(DType.FLOAT32, 2), [1, 2]),
    "text": (b"a word", info(DType.STRING, 1), [b"a word"]),
    "raw elements": (np.float32([3, 4]).tobytes(), info(DType.FLOAT32, 2), [3, 4]),
}


@pytest.mark.parametrize(("content", "target", "wanted"), PIPED.values(), ids=PIPED.keys())
def test_the_format_of_standard_input_is_detected_from_its_first_bytes(
    monkeypatch: pytest.MonkeyPatch, content: bytes, target: TensorInfo, wanted: list[Any]
) -> None:
    monkeypatch.setattr("sys.stdin", _Piped(content))
    (given,) = stream(["-"], target, ReadSettings()).items
    assert given.array.reshape(-1).tolist() == wanted


def test_pipes_devices_and_empty_input_are_rejected_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = info(DType.UINT8, 1, 2, 2, 1)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ExecutionError, match="is not a file but a pipe; redirect it to --input -"):
        stream([str(tmp_path / "pipe.png")], target, ReadSettings())
    with pytest.raises(ExecutionError, match="/dev/zero for input 'x' is not a file"):
        stream(["/dev/zero"], target, ReadSettings())
    monkeypatch.setattr("sys.stdin", _Piped(b""))
    with pytest.raises(ExecutionError, match="standard input is empty"):
        stream(["-"], target, ReadSettings())


# ---- videos and other sounds


def _video(path: Path, frames: int, size: tuple[int, int] = (64, 48)) -> None:
    av = pytest.importorskip("av", reason="PyAV is not installed")
    with av.open(str(path), "w") as container:
        out = container.add_stream("mpeg4", rate=10)
        out.width, out.height, out.pix_fmt = *size, "yuv420p"
        for number in range(frames):
            grey = np.full((size[1], size[0], 3), 20 + 40 * number, np.uint8)
            container.mux(out.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        container.mux(out.encode())


def test_a_video_is_read_frame_by_frame(tmp_path: Path) -> None:
    _video(tmp_path / "x.mp4", 5)
    found = stream([str(tmp_path / "x.mp4")], info(DType.UINT8, 1, 48, 64, 1), ReadSettings())
    assert (found.count, found.continuous) == (5, True)
    given = list(found.items)
    assert [abs(int(one.array.mean()) - 20 - 40 * at) < 4 for at, one in enumerate(given)] == [True] * 5
    assert "frame 3, at 0.20 s" in given[2].source


@pytest.mark.parametrize("name", ["x.mp4", "x.avi"])
def test_files_that_are_not_videos_are_rejected(tmp_path: Path, name: str) -> None:
    pytest.importorskip("av", reason="PyAV is not installed")
    (tmp_path / name).write_bytes(b"words, and no more than words" * 9)
    with pytest.raises(ExecutionError, match="cannot be read as a video"):
        stream([str(tmp_path / name)], info(DType.UINT8, 1, 2, 2, 1), ReadSettings())


@pytest.mark.parametrize("suffix", [".flac", ".ogg"])
def test_flac_and_ogg_sounds_are_read(tmp_path: Path, suffix: str) -> None:
    soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
    tone = np.sin(np.arange(4000) / 8)
    soundfile.write(str(tmp_path / f"x{suffix}"), tone, 8000)
    (given,) = stream([str(tmp_path / f"x{suffix}")], info(DType.FLOAT32, 4000), ReadSettings(sample_rate=8000)).items
    np.testing.assert_allclose(given.array[100:-100], tone[100:-100], atol=0.05)


def test_a_long_sound_is_split_into_pieces(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(_wave([100 * at for at in range(10)]))
    target = info(DType.INT16, 4)
    found = stream([str(tmp_path / "x.wav")], target, ReadSettings(sample_rate=8000))
    assert (found.count, found.pieces) == (3, True)
    assert [given.array.tolist() for given in found.items] == [
        [0, 100, 200, 300], [400, 500, 600, 700], [800, 900, 0, 0],
    ]  # fmt: skip
    one = stream([str(tmp_path / "x.wav")], target, ReadSettings(sample_rate=8000, start=2 / 8000))
    assert [given.array.tolist() for given in one.items] == [[200, 300, 400, 500]]


def test_samples_of_24_bits_can_be_read(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "x.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(3)
        file.setframerate(8000)
        file.writeframes(b"\0\0\x40" + b"\1\2\3" + b"\0\0\xc0" + b"\1\2\3")
    given: InputValue = next(stream([str(tmp_path / "x.wav")], info(DType.FLOAT32, 2), ReadSettings()).items)
    assert given.array.tolist() == [0.5, -0.5]


# ---- at the shell


@pytest.fixture
def picture_model(tmp_path: Path) -> Path:
    """A model file that computes the absolute values of a grey picture of 2 x 2 pixels."""
    type_ = TensorType(DType.FLOAT32, (1, 2, 2, 1))
    file = tmp_path / "picture.tflite"
    file.write_bytes(litert.one_operator("ABS", ("AbsOptions", {}), CallTypes((type_,), (type_,)), {}))
    return file


def _photos(count: int) -> list[str]:
    for at in range(count):
        Image.fromarray(np.full((2, 2), 50 * at, np.uint8)).save(f"{at}.png")
    return [word for at in range(count) for word in ("--input", f"{at}.png")]


@pytest.mark.parametrize("batch", [None, 1, 2, 3, 8])
def test_batches_give_the_results_of_single_items(shell: Shell, picture_model: Path, batch: int | None) -> None:
    options = () if batch is None else ("--batch", batch)
    status, out, err = shell(picture_model, *_photos(5), *options, "--dump", "out.npy")
    assert status == 0, err
    assert np.load("out.npy").shape == (5, 1, 2, 2, 1)
    assert np.rint(np.load("out.npy")[:, 0, 0, 0, 0] * 255).tolist() == [0, 50, 100, 150, 200]
    assert "4.png, pixels as 0to1" in out


def test_items_are_limited_and_the_omitted_ones_reported(shell: Shell, picture_model: Path) -> None:
    _photos(5)
    status, out, err = shell(picture_model, "--input", ".", "--limit", 2, "--json", "-r", 3, "-w", 2)
    assert status == 0, err
    found = json.loads(out)
    assert [item["source"].partition(",")[0] for item in found["items"]] == ["0.png", "1.png"]
    assert found["execute_ms"]["runs"] == 6
    assert "only the first 2 of 5 items are run; --limit N sets another number" in err


def test_small_outputs_are_printed_completely(shell: Shell, picture_model: Path) -> None:
    _, out, _ = shell(picture_model, *_photos(1))
    assert re.search(r"\[\[\[\[0\.\],\s+\[0\.\]\],\s+\[\[0\.\],\s+\[0\.\]\]\]\]", out)


def _printed(count: int) -> str:
    (line,) = printed_outputs([TensorInfo("y", DType.INT32, (count,))], [np.arange(count, dtype=np.int32)])
    return line


def test_only_the_first_elements_of_a_large_output_are_printed() -> None:
    assert _printed(64).endswith(" 62, 63]")
    assert _printed(65) == "output 0 'y' int32[65]: [0, 1, 2, 3, 4, 5, 6, 7] ..."


@pytest.mark.parametrize("suffix", [".png", ".npz", ".h5"])
def test_outputs_are_saved_in_the_format_of_the_suffix(shell: Shell, picture_model: Path, suffix: str) -> None:
    Image.fromarray(np.uint8([[0, 255], [51, 102]])).save("x.png")
    status, _, err = shell(picture_model, "--input", "x.png", "--dump", f"out{suffix}")
    assert status == 0, err
    if suffix == ".png":
        with Image.open("out.png") as saved:
            assert np.asarray(saved).tolist() == [[0, 255], [51, 102]]
    assert Path(f"out{suffix}").stat().st_size > 0


def test_an_output_can_be_saved_as_a_sound(shell: Shell, tmp_path: Path) -> None:
    type_ = TensorType(DType.FLOAT32, (1, 4))
    (tmp_path / "m.tflite").write_bytes(
        litert.one_operator("ABS", ("AbsOptions", {}), CallTypes((type_,), (type_,)), {})
    )
    (tmp_path / "x.wav").write_bytes(_wave([-16384, 16384, 0, -8192]))
    status, _, err = shell("m.tflite", "--input", "x.wav", "--sample-rate", 8000, "--dump", "out.wav")
    assert status == 0, err
    with wave.open("out.wav") as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        assert np.frombuffer(file.readframes(4), np.int16).tolist() == [16384, 16384, 0, 8192]
