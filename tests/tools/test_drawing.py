"""Drawing answers on pictures of every size, and as videos."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageDraw

from onert.ir import ExecutionError, OnertWarning
from onert.tools.answers import Answer, Found
from onert.tools.drawing import Film, drawn, fonts, write_picture
from onert.tools.drawing.canvas import LARGEST, SMALLEST, Canvas, shortened
from onert.tools.drawing.palette import color_of, ink_on
from onert.tools.reports import progress
from onert.tools.reports.progress import Progress

GREY = 128


def grey(height: int, width: int) -> np.ndarray[Any, Any]:
    return np.full((height, width, 3), GREY, np.uint8)


def boxes(count: int) -> Answer:
    rng = np.random.default_rng(count)
    found = []
    for index in range(count):
        top, left = rng.uniform(0, 0.8, 2)
        found.append(Found(index % 5, 0.9, f"class {index % 5}", "o", (top, left, top + 0.2, left + 0.2)))
    return Answer("detection", "", tuple(found))


@pytest.mark.parametrize("size", [(600, 1200), (2, 900), (900, 2), (1, 1), (28, 28), (5000, 300)])
@pytest.mark.parametrize("count", [0, 3, 60])
def test_boxes_are_drawn_on_pictures_of_every_shape(size: tuple[int, int], count: int) -> None:
    image = drawn(boxes(count), grey(*size))
    assert max(image.size) <= LARGEST + 2000
    assert max(image.size) >= SMALLEST
    if count and min(size) > 2:
        assert (np.asarray(image.convert("RGB")) == color_of(0)).all(-1).any()


def test_a_box_is_drawn_where_it_was_detected() -> None:
    answer = Answer("detection", "", (Found(3, 0.9, "", "o", (0.25, 0.5, 0.75, 1.0)),))
    pixels = np.asarray(drawn(answer, grey(800, 800)))
    rows, columns = np.nonzero((pixels == color_of(3)).all(-1))
    below = columns > 700  # right of the label
    assert (rows[below].min(), rows[below].max()) == pytest.approx((200, 599), abs=2)
    assert (columns.min(), columns.max()) == pytest.approx((400, 799), abs=2)


def test_labels_do_not_overlap_and_those_without_room_go_into_a_legend() -> None:
    canvas = Canvas.of(grey(600, 600))
    places = [canvas.label((100, 300, 150, 350), f"name {at}", "0.50", color_of(at)) for at in range(8)]
    assert places == sorted(places, reverse=True)
    assert 0 < sum(places) < 8
    for at, one in enumerate(canvas.labels):
        for other in canvas.labels[:at]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    before = canvas.height
    canvas.legend([(color_of(7), "name 7: 1")])
    assert canvas.height > before


def test_long_names_are_shortened_to_the_given_width() -> None:
    font = Canvas.of(grey(600, 600)).font()
    assert shortened("short", font, 500) == "short"
    assert shortened("word " * 100, font, 100).endswith("...")
    assert font.getlength(shortened("word " * 100, font, 100)) <= 100


def test_a_label_keeps_its_score_when_its_name_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, at, words, **_: written.append(words))
    assert Canvas.of(grey(600, 600)).label((100, 300, 150, 350), "word " * 100, "0.50", color_of(0))
    assert re.fullmatch(r"(word )*\w*\.\.\. 0\.50", written[0])


@pytest.mark.parametrize("index", range(40))
def test_text_contrasts_with_its_background_colour(index: int) -> None:
    color = color_of(index)
    ink = ink_on(color)
    weights = (0.299, 0.587, 0.114)
    apart = abs(sum(w * (a - b) for w, a, b in zip(weights, color, ink, strict=True)))
    assert apart > 80
    assert len({color_of(at) for at in range(index + 1)}) == index + 1


def test_segmented_areas_are_blended_and_the_background_is_unchanged() -> None:
    classes = np.zeros((20, 20), np.int64)
    classes[:, 10:] = 2
    found = (Found(0, 0.5, "", "o", pixels=200), Found(2, 0.5, "cat", "o", pixels=200))
    pixels = np.asarray(drawn(Answer("segmentation", "", found, classes), grey(640, 640)))
    assert pixels[300, 100].tolist() == [GREY] * 3
    mixed = [(GREY + part) // 2 for part in color_of(2)]
    np.testing.assert_allclose(pixels[300, 500], mixed, atol=1)


def test_masks_and_keypoints_are_drawn_in_place_without_uncertain_points() -> None:
    mask = np.zeros((16, 16), bool)
    mask[4:8, 4:8] = True
    points = tuple((0.8, 0.1 + 0.05 * at, 0.9 if at else 0.1) for at in range(17))
    answer = Answer("segmentation", "", (Found(1, 0.9, "", "o", mask=mask, points=points),))
    pixels = np.asarray(drawn(answer, grey(640, 640))).astype(int)
    changed = np.abs(pixels - GREY).max(-1) > 5
    assert changed[240, 240]
    assert not changed[100, 100]
    assert changed[512, 128]
    assert not changed[505:520, 50:64].any()  # the keypoint with a low score


def test_class_scores_are_drawn_below_the_picture() -> None:
    answer = Answer("classes", "", (Found(3, 0.9, "three", "o"), Found(8, 0.1, "eight", "o")))
    image = drawn(answer, grey(640, 640))
    assert image.width == 640
    assert image.height > 640
    assert (np.asarray(image)[:640] == GREY).all()


def test_failing_to_write_a_picture_is_reported(tmp_path: Path) -> None:
    image = drawn(boxes(1), grey(640, 640))
    with pytest.raises(ExecutionError, match=re.escape(f"{tmp_path / 'none/x.png'} cannot be written: No such file")):
        write_picture(image, tmp_path / "none" / "x.png")


# ---- progress


class _Terminal:
    """A fake standard error."""

    def __init__(self, *, terminal: bool) -> None:
        self.words: list[str] = []
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, words: str) -> int:
        self.words.append(words)
        return len(words)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(("terminal", "after"), [(True, 0.0), (True, 60.0), (False, 0.0)])
def test_progress_is_shown_only_at_a_terminal_and_after_a_delay(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, after: float
) -> None:
    error = _Terminal(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(progress, "AFTER", after)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as shown:
        shown.phase("compiling")
        if shown._timer is not None and not after:
            shown._timer.join()
        shown.phase("running", 3)
        shown.advance()
        if shown._bar is not None:
            shown._bar.refresh()
    output = "".join(error.words)
    assert ("1/3" in output) == (terminal and not after)
    assert bool(output) == (terminal and not after)


# ---- letters of other scripts and their fonts


@pytest.fixture
def fonts_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """A function that makes the fonts in a folder the only ones of the system."""

    def forget() -> None:
        fonts._files.cache_clear()
        fonts._chosen.cache_clear()

    def of(folder: Path) -> None:
        monkeypatch.setattr(fonts, "folders", lambda: (folder,))
        forget()

    yield of
    forget()


def labelled(label: str) -> np.ndarray[Any, Any]:
    answer = Answer("detection", "", (Found(0, 0.9, label, "o", (0.3, 0.3, 0.7, 0.9)),))
    return np.asarray(drawn(answer, grey(600, 600)))


@pytest.mark.parametrize("label", ["\u043a\u043e\u0448\u043a\u0430", "\u03b3\u03ac\u03c4\u03b1"])
def test_letters_in_an_installed_font_are_drawn(
    label: str, fonts_of: Callable[[Path], None], recwarn: pytest.WarningsRecorder
) -> None:
    folder = Path("/usr/share/fonts/truetype/dejavu")
    if not folder.is_dir():
        pytest.skip("DejaVu is not installed")
    fonts_of(folder)
    assert not (labelled(label) == labelled(label[::-1])).all()
    assert not [each for each in recwarn if "no font" in str(each.message)]


def test_letters_that_no_font_has_cause_one_warning(tmp_path: Path, fonts_of: Callable[[Path], None]) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    fonts_of(tmp_path)
    output = "no installed font has all letters of the labels"
    with pytest.warns(OnertWarning, match=output) as first:
        labelled("\u732b")
    with pytest.warns(OnertWarning, match=output) as second:
        labelled("\u72ac 2")
    assert len({str(note.message) for note in (*first, *second)}) == 1


# ---- videos


def test_drawn_frames_are_written_as_a_video_of_constant_size(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="PyAV is not installed")
    film = Film(tmp_path / "out.mp4", Fraction(10))
    for size in ((60, 81), (60, 81), (90, 100), (40, 20)):
        film.add(drawn(boxes(1), grey(*size)))
    film.close()
    film.close()
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        frames = [(frame.height, frame.width) for frame in container.decode(stream)]
        assert stream.average_rate == 10
    assert film.count == len(frames) == 4
    assert len(set(frames)) == 1
    assert not any(side % 2 for side in frames[0])


@pytest.mark.parametrize("rate", [None, Fraction(0), Fraction(90_000)])
def test_an_implausible_frame_rate_is_replaced_by_25(tmp_path: Path, rate: Fraction | None) -> None:
    av = pytest.importorskip("av", reason="PyAV is not installed")
    film = Film(tmp_path / "out.mkv", rate)
    film.add(drawn(boxes(0), grey(40, 40)))
    film.close()
    with av.open(str(tmp_path / "out.mkv")) as container:
        assert container.streams.video[0].average_rate == 25


def test_failing_to_write_a_video_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="PyAV is not installed")
    film = Film(tmp_path / "missing" / "out.mp4", None)
    with pytest.raises(ExecutionError, match=r"out\.mp4 cannot be written"):
        film.add(drawn(boxes(0), grey(40, 40)))
    film.close()
    assert film.count == 0
