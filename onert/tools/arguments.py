"""The arguments of `onert_run`: those of ONE's `onert_run` under the same names, and our own."""

from __future__ import annotations

import argparse
import ast
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onert import __version__
from onert.compiler.settings.config_keys import PRECISIONS

from .answers import TASKS
from .drawing import FILMS, WRITTEN
from .exits import UsageError
from .inputs import IMAGES, MAX_RATE, MODES, PIPED, SOUNDS, VIDEOS, Fit
from .options import add_threads, option
from .outputs import SAVED
from .quantize import KINDS

H5 = "h5"
"""The value of --shape_prepare and --shape_run that means the shapes of the arrays in --load."""
CODEGEN = "llvm-gen"
CALLED = {
    "backends": "--backends",
    "executor": "--executor",
    "input_shapes": "--shape_prepare",
    "num_threads": "--num_threads",
    "onert.frontend.tnn.load(path, random_weights=0)": "--random-weights 0",
    "precision": "--precision",
    "set_input_shape": "--shape_run",
    "tune": "--tune",
}
"""Command-line names of the library's options and functions."""
_LEAST = {
    "num_runs": 1,
    "warmup_runs": 0,
    "minmax_runs": 0,
    "num_threads": 1,
    "topk": 1,
    "sample_rate": 1,
    "seed": 0,
    "run_delay": -1,
    "verbose_level": 0,
    "batch": 1,
    "limit": 1,
}
_DASHED = ("sample_rate", "min_score")
"""Options of our own are written with dashes; ONE's have underscores."""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="onert_run",
        description="Load a model, compile it, run it, and print the times and the outputs.",
    )
    option(out, "model MODEL", "a model file, or an nnpackage (directory or zip)", nargs="?")
    option(out, "--nnpackage PATH", "MODEL, which must be an nnpackage")
    option(out, "--modelfile FILE", "MODEL, which must be a model file")
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    data = out.add_argument_group("inputs and outputs")
    option(data, "-l --load FILE", "read inputs from .npz, .npy or .h5", type=Path)
    option(data, "--load:raw PREFIX", "read inputs from raw files PREFIX.0, ...", dest="load_raw")
    option(
        data,
        "--input [NAME=]FILE",
        "read an input from an image, a sound, a text or a tensor; the items of a folder, a video or several "
        "files run one after another; - is standard input",
        action="append",
        default=[],
    )
    option(data, "--text [NAME=]TEXT", "give an input of strings this text", action="append", default=[])
    option(data, "--batch N", "items to run at once (default 1)", type=int)
    option(data, "--limit N", "at most N items of a folder or a video (default 1000)", type=int)
    option(
        data,
        "--image-mode",
        "range of pixel values (default: from the model's metadata, otherwise 0to255 for unsigned bytes, "
        "neg128to127 for signed bytes, 0to1 for grey floats, neg1to1 for other floats)",
        choices=tuple(MODES),
    )
    option(
        data,
        "--resize",
        "how to fit a picture whose shape differs from the input's (default: letterbox if the model's metadata "
        "says so, otherwise stretch)",
        choices=tuple(fit.value for fit in Fit),
    )
    option(data, "--sample-rate HZ", "sample rate that the model takes; sounds are resampled to it", type=int)
    option(data, "--start S", "start a sound at second S (default 0)", type=float, default=0.0)
    option(data, "--seed N", "seed of random inputs (default 0)", type=int, default=0)
    option(
        data,
        "--random-weights SEED",
        "give a TNN structure random weights, the same for the same seed; no .tnnmodel is read",
        type=int,
    )
    option(data, "--fixed_input", "use the same random inputs for every run")
    option(data, "--force_float", "pass and return real numbers for quantised tensors")
    option(data, "-d --dump FILE", "write outputs to .npz, .npy, .h5, .png or .wav", type=Path)
    option(data, "--dump:raw PREFIX", "write outputs to raw files PREFIX.0, ...", dest="dump_raw")
    option(data, "--dump_input:raw PREFIX", "write inputs to raw files", dest="dump_input_raw")
    option(data, "--labels FILE", "names of the classes, one per line", type=Path)
    option(data, "--topk N", "print the N best classes or detections (default: 5 classes)", type=int)
    option(data, "--min-score S", "omit results with a lower score (default 0.3 for detections)", type=float)
    option(data, "--task", "how to interpret the outputs (default: recognised from shapes and ranges)", choices=TASKS)
    option(
        data,
        "--show FILE",
        "draw the results onto the picture; several pictures go to a folder or get numbered names; a video can "
        "become a video (.mp4, .mkv, .mov, .avi, .webm)",
        type=Path,
    )
    option(data, "--output_sizes S", "[index, bytes, ...]: accepted for ONE's scripts, without effect")
    option(data, "--output_shape S", "[index, [dims], ...]: reshape outputs before --dump writes them")
    runs = out.add_argument_group("runs")
    option(runs, "-r --num_runs N", "measured runs (default 1)", type=int, default=1)
    option(runs, "-w --warmup_runs N", "runs before the measured ones (default 0)", type=int, default=0)
    option(runs, "-t --run_delay US", "microseconds between runs", type=int, default=-1)
    option(runs, "--minmax_runs N", "earlier runs that record ranges in minmax.json", type=int, default=0)
    option(runs, "--shape_prepare S", "input shapes to compile for: [index, [dims], ...], or h5 for those of --load")
    option(
        runs,
        "--shape_run S",
        "input shapes to change to: [index, [dims], ...], or h5 for those of --load (default with --load)",
    )
    option(runs, "--signature KEY", "the signature to run")
    compiling = out.add_argument_group("compiler")
    option(compiling, "--backends A;B", "backends in order of preference")
    option(compiling, "--executor NAME", "Linear, Dataflow or Parallel")
    option(compiling, "--precision", "how much rounding is allowed (default exact)", choices=PRECISIONS)
    option(compiling, "--tune SECONDS", "spend SECONDS measuring alternative kernels, and keep the best", type=float)
    add_threads(compiling, type=int, metavar="N", help="threads (default: all this process may use)")
    option(
        compiling,
        "-q --quantize",
        "quantise weights, or everything (uint8, int16); write the result to a file and run it",
        choices=KINDS,
    )
    option(compiling, "--qpath FILE", "where -q writes (default: MODEL.TYPE.tflite or .circle)", type=Path)
    option(
        compiling, "-c --codegen BACKEND-gen", "also compile the model ahead of time, as onert_bundle does: llvm-gen"
    )
    option(compiling, "--cpath DIR", "where -c writes (default: MODEL.BACKEND)", type=Path)
    report = out.add_argument_group("report")
    option(report, "-m --mem_poll", "print memory use after each phase")
    option(report, "-g --gpumem_poll", "accepted for ONE's scripts; no backend uses GPU memory")
    option(report, "-p --write_report", "write {exec}-{model}-{backend}.csv")
    option(report, "-v --verbose_level N", "1: what runs where, 2: tracebacks", type=int, default=0)
    option(report, "--trace FILE", "write a trace for Perfetto or Chrome", type=Path)
    option(report, "--profile", "print the time of each operation")
    option(
        report,
        "--profile-backends",
        "measure every operation on every backend, write exec_time.json in WORKSPACE_DIR, and run nothing else",
    )
    option(report, "--json", "print one JSON object and nothing else")
    return out


def shapes(text: str | None, option: str) -> dict[int | str, tuple[int, ...]]:
    """Parse `[0,[1,2],2,[]]` into shapes by position; `h5` gives none. Raises UsageError for anything else."""
    if text is None or wants_h5(text):
        return {}
    try:
        flat = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        flat = None
    if not isinstance(flat, list) or len(flat) % 2 or not all(_is_shape(*pair) for pair in _pairs(flat)):
        raise UsageError(f"{option} is {text!r}, expected [index, [dims], ...]")
    found: dict[int | str, tuple[int, ...]] = {}
    for index, dims in _pairs(flat):
        if index in found:
            raise UsageError(f"{option} gives {index} two shapes")
        found[index] = tuple(dims)
    return found


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _is_shape(index: object, dims: object) -> bool:
    return type(index) is int and isinstance(dims, list | tuple) and all(type(d) is int for d in dims)


def backend_names(text: str | None) -> tuple[str, ...]:
    """The names in `--backends A;B`. Raises UsageError if the option is given without a name."""
    names = tuple(name.strip() for name in (text or "").split(";") if name.strip())
    if text is not None and not names:
        raise UsageError(f"--backends is {text!r}, expected names with ';' between them")
    return names


def require_suffix(path: Path | None, option: str, suffixes: Sequence[str]) -> None:
    """Raises UsageError if the suffix of a file to write is not one of the supported formats."""
    if path is not None and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} is {path}, expected a file that ends in {' or '.join(suffixes)}")


def check(options: argparse.Namespace) -> None:
    """Validate the options and set `model` to the path given in one of three ways. Raises UsageError for numbers out of
    range and for options that exclude one another."""
    options.model = _model(options)
    for name, low in _LEAST.items():
        value = getattr(options, name)
        if value is not None and value < low:
            option = name.replace("_", "-") if name in _DASHED else name
            raise UsageError(f"--{option} is {value}, expected at least {low}")
    for item in options.input:
        if item != PIPED and not all(item.partition("=")) and not os.path.exists(item):
            raise UsageError(f"--input is {item!r}, expected NAME=FILE or an existing file")
    if options.input.count(PIPED) + sum(item.endswith(f"={PIPED}") for item in options.input) > 1:
        raise UsageError("--input - is given twice, but there is one standard input")
    if options.min_score is not None and not options.min_score >= 0:
        raise UsageError(f"--min-score is {options.min_score}, expected at least 0")
    if options.show is not None:
        require_suffix(options.show if options.show.suffix else None, "--show", (*WRITTEN, *FILMS))
        if options.show.suffix.lower() in FILMS and not any(_may_be(item, VIDEOS) for item in options.input):
            raise UsageError(f"--show is {options.show}, a video, which needs a video in --input")
    if options.sample_rate is not None and options.sample_rate > MAX_RATE:
        raise UsageError(f"--sample-rate is {options.sample_rate}, expected at most {MAX_RATE}")
    if not options.start >= 0:
        raise UsageError(f"--start is {options.start}, expected at least 0")
    for given, option, suffixes, what in (
        (options.image_mode is not None, "--image-mode", IMAGES | VIDEOS, "an image"),
        (options.resize is not None, "--resize", IMAGES | VIDEOS, "an image"),
        (options.show is not None, "--show", IMAGES | VIDEOS, "an image"),
        (options.sample_rate is not None and options.dump is None, "--sample-rate", SOUNDS, "a sound"),
        (options.start != 0, "--start", SOUNDS, "a sound"),
        (options.limit is not None, "--limit", IMAGES | VIDEOS | SOUNDS | {".npy", ".txt"}, "a file"),
    ):
        if given and not any(_may_be(item, suffixes) for item in options.input):
            raise UsageError(f"{option} is given without {what} in --input")
    if options.load is not None and options.load_raw is not None:
        raise UsageError("--load and --load:raw are both given, expected one")
    for name in ("shape_prepare", "shape_run"):
        if wants_h5(getattr(options, name)) and not is_h5(options.load):
            raise UsageError(f"--{name} is {H5}, which takes the shapes from --load, expected --load with an .h5 file")
    require_suffix(options.dump, "--dump", SAVED)
    if options.output_shape is not None and options.dump is None:
        raise UsageError("--output_shape is given without --dump")
    _require_sizes(options.output_sizes)
    for option in ("shape_prepare", "shape_run", "output_shape"):
        shapes(getattr(options, option), f"--{option}")
    if options.codegen is not None and not options.codegen.endswith("-gen"):
        raise UsageError(f"--codegen is {options.codegen!r}, expected a backend's name followed by -gen")
    for path, what in (("qpath", "quantize"), ("cpath", "codegen")):
        if getattr(options, path) is not None and getattr(options, what) is None:
            raise UsageError(f"--{path} is given without --{what}")


def _may_be(item: str, suffixes: frozenset[str]) -> bool:
    """Whether an --input has one of these suffixes, or could (a folder or standard input)."""
    path = item if os.path.exists(item) else item.rpartition("=")[2]
    return path == PIPED or os.path.splitext(path)[1].lower() in suffixes or os.path.isdir(path)


def _require_sizes(text: str | None) -> None:
    """Raises UsageError unless the text is `[index, bytes, ...]`."""
    try:
        found = [] if text is None else ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) % 2 or not all(type(n) is int and n >= 0 for n in found):
        raise UsageError(f"--output_sizes is {text!r}, expected [index, bytes, ...]")


def wants_h5(shapes_text: str | None) -> bool:
    return shapes_text is not None and shapes_text.lower() == H5


def is_h5(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() in (".h5", ".hdf5")


def _model(options: argparse.Namespace) -> str:
    """The model's path, given as MODEL, --nnpackage or --modelfile. Raises UsageError unless exactly one is given."""
    given = {
        name: path
        for name, path in (
            ("MODEL", options.model),
            ("--nnpackage", options.nnpackage),
            ("--modelfile", options.modelfile),
        )
        if path is not None
    }
    if len(given) != 1:
        raise UsageError(f"{' and '.join(given) or 'no model'} given, expected one of MODEL, --nnpackage, --modelfile")
    ((option, path),) = given.items()
    is_file = os.path.isfile(path)  # false for a path that the system rejects, such as one that is too long
    is_package = os.path.isdir(path) or (is_file and zipfile.is_zipfile(path))
    if option == "--nnpackage" and is_file and not is_package:
        raise UsageError(f"--nnpackage is {path}, a model file; expected a directory or a zip archive")
    if option == "--modelfile" and is_package:
        raise UsageError(f"--modelfile is {path}, a package; expected a model file")
    return str(path)
