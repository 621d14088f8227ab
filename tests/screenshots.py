"""Screenshots for the documentation. `python tests/screenshots.py [NAME...]` retakes them and writes their page.

A row of `PICTURES` is a picture: its name, its caption, and how it is taken: from a report's page in Chromium
(`report_page`), or by a command that writes a PNG file (`by_command`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from chromium import PROGRAM, REASON, Chromium
from shared_material import REPOSITORY, SHARED

from onert.tools import inspect, run

FOLDER = REPOSITORY / "docs" / "pictures"
PAGE = REPOSITORY / "docs" / "screenshots.md"
WIDTH, HEIGHT = 1280, 800
MODEL = SHARED / "models" / "google-coral" / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
BRANCHED = SHARED / "models" / "generated-keras" / "bert_small_4l_256h_s128_fp32.tflite"
DETECTOR = SHARED / "models" / "tf-examples" / "detect.tflite"
SEGMENTER = SHARED / "models" / "tf-examples" / "deeplabv3_257_mv_gpu.tflite"
NAMES = SHARED / "data" / "labels" / "coco_labels.txt"
PERSON = SHARED / "data" / "coral" / "grace_hopper.bmp"
"""A portrait in the public domain."""
INTRODUCTION = (
    "[Reports](reports.md) of `onert_inspect`, and results drawn by [`onert_run`](running.md). "
    "`python tests/screenshots.py` retakes them."
)


@frozen
class Picture:
    """A picture of the page, and how it is taken."""

    name: str
    title: str
    words: str
    take: Callable[[Path], None]


def report_page(
    model: Path, tab: str, *arguments: str, theme: str = "light", script: str = "", width: int = WIDTH
) -> Callable[[Path], None]:
    """Takes a tab of a model's report after running a script in it."""

    def take(target: Path) -> None:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            page = Path(folder) / "report.html"
            status = inspect.main([str(model), "--profile", "--html", str(page), *arguments])
            if status:
                raise SystemExit(status)
            with Chromium(Path(folder) / "profile") as browser:
                browser.size(width, HEIGHT)
                browser.theme(theme)
                browser.open(f"{page.as_uri()}#tab={tab}")
                if script:
                    browser.run(script)
                time.sleep(0.5)  # until parts that are drawn later have been drawn
                browser.picture(target)

    return take


def by_command(main: Callable[[list[str]], int], *arguments: str) -> Callable[[Path], None]:
    """Takes a command's picture; `{}` among its arguments is the file it writes."""

    def take(target: Path) -> None:
        status = main([argument.replace("{}", str(target)) for argument in arguments])
        if status:
            raise SystemExit(status)

    return take


_FIRST = "panel('graph', 0).view.node((n) => n.kind === 'group' && n.operations.length > 4)"
_SELECT = f"panel('graph', 0).view.select({_FIRST}, {{ go: true }})"

PICTURES = (
    Picture(
        "overview",
        "What a model is",
        "A report begins with a summary. `onert_inspect MODEL --html report.html --profile` writes it.",
        report_page(MODEL, "overview"),
    ),
    Picture(
        "graph",
        "The graph",
        "A compiled network: fused groups can be folded, and the side panel says where an operation runs and why.",
        report_page(BRANCHED, "graph", script=_SELECT),
    ),
    Picture(
        "memory",
        "The memory plan",
        "Tensors as bars over time and offset; those live at the peak are outlined and listed below.",
        report_page(MODEL, "memory"),
    ),
    Picture(
        "time",
        "A run",
        "One run by thread with the memory in use, then time by operation kind and by operation.",
        report_page(MODEL, "time", theme="dark"),
    ),
    Picture(
        "roofline",
        "The roofline",
        "Each operation's arithmetic intensity against the limits of this machine.",
        report_page(MODEL, "roofline"),
    ),
    Picture(
        "tensors",
        "Weights",
        "Types, quantisation and histograms of all constants.",
        report_page(MODEL, "tensors", script="document.querySelector('tr.link').click()"),
    ),
    Picture(
        "detection",
        "Detections",
        "`onert_run detect.tflite --input photo.bmp --show out.png` reads a detector's outputs and draws them.",
        by_command(run.main, str(DETECTOR), "--input", str(PERSON), "--labels", str(NAMES), "--show", "{}"),
    ),
    Picture(
        "segmentation",
        "Areas",
        "The same for a network that classifies each pixel.",
        by_command(run.main, str(SEGMENTER), "--input", str(PERSON), "--show", "{}"),
    ),
    Picture(
        "beside",
        "Side by side",
        "Two executors, or two models: `--compare executor=Parallel`.",
        report_page(BRANCHED, "overview", "--compare", "executor=Parallel"),
    ),
)


def page() -> str:
    """The page of all pictures."""
    lines = ["# Screenshots", "", INTRODUCTION]
    for each in PICTURES:
        lines += ["", f"## {each.title}", "", each.words, "", f"![{each.title}](pictures/{each.name}.png)"]
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Take the named pictures, or all, and write the page."""
    if PROGRAM is None:
        raise SystemExit(REASON)
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        if not names or each.name in names:
            each.take(FOLDER / f"{each.name}.png")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
