"""Files that another process changes while they are in use: the original content is used, or an error is raised."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen

from onert.ir import DType

COUNT, FEW = 1 << 16, 16000
"""With COUNT weights a cache entry refers to those in the model's file; with FEW it contains them."""
STAGES = ("load", "compile", "run", "shape")

CHILD = """
import json
import sys
import numpy as np
import onert
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import other_shapes
from onert.ir import content

other_shapes.WORTH_CACHING = 0.0
content.READ_AT_ONCE = int(sys.argv[1])


def uses(path, stage):
    def reached(at):
        if at == stage:
            print("reached", flush=True)
            sys.stdin.readline()

    package = onert.load(path)
    reached("load")
    program = onert.compile(package, num_threads=1)
    WRITERS.finish()
    reached("compile")
    with onert.Execution(program) as execution:
        (given,) = program.inputs
        yield execution.run([np.ones(given.shape, np.float32)])
        reached("run")
        yield execution.run([np.ones(given.shape, np.float32)])
        execution.set_input_shape(0, (3, *given.shape[1:]))
        reached("shape")
        yield execution.run([np.ones((3, *given.shape[1:]), np.float32)])


for line in sys.stdin:
    job = json.loads(line)
    try:
        results = [y for made in uses(job["path"], job["stage"]) for y in made.values()]
        right = all((y == np.arange(1, y.shape[-1] + 1)).all() for y in results)
        print("original" if right else "other", flush=True)
    except onert.OnertError as error:
        print("refused:", error, flush=True)
"""


def truncated(path: Path) -> None:
    os.truncate(path, 100)


def overwritten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(bytes(size // 2) + b"\x3f" * (size - size // 2))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"no such thing" * 100)
    other.replace(path)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(10000))


@cache
def model(count: int = COUNT) -> bytes:
    """`x * weights`, with `count` weights 1, 2, ..."""
    writer = pytest.importorskip("model_writer")
    built = writer.Model()
    graph = built.graph()
    x, y = graph.input(DType.FLOAT32, (1, count)), graph.tensor(DType.FLOAT32, (1, count))
    weights = graph.constant(np.arange(1, count + 1, dtype=np.float32))
    graph.operator("MUL", [x, weights], [y], ("MulOptions", {}))
    graph.outputs(y)
    content: bytes = built.done()
    return content


def running(path: str) -> bytes:
    """A model that runs the model at a path beside it."""
    writer = pytest.importorskip("model_writer")
    built = writer.Model(writer.CIRCLE)
    graph = built.graph()
    x, y = graph.input(DType.FLOAT32, (1, COUNT)), graph.tensor(DType.FLOAT32, (1, COUNT))
    graph.operator("RUN_MODEL", [x], [y], ("RunModelOptions", {"location": path.encode()}))
    graph.outputs(y)
    content: bytes = built.done()
    return content


def package(folder: Path, content: bytes) -> Path:
    (folder / "package" / "metadata").mkdir(parents=True)
    manifest = {"major-version": "1", "minor-version": "0", "patch-version": "0"}
    manifest |= {"models": ["model.tflite"], "model-types": ["tflite"]}  # type: ignore[dict-item]
    (folder / "package" / "metadata" / "MANIFEST").write_text(json.dumps(manifest))
    (folder / "package" / "model.tflite").write_bytes(content)
    return folder / "package"


@frozen
class Place:
    """Where a model is loaded from, and the file that is changed."""

    path: Path
    changed: Path


def as_file(folder: Path) -> Place:
    (folder / "model.tflite").write_bytes(model())
    return Place(folder / "model.tflite", folder / "model.tflite")


def as_directory(folder: Path) -> Place:
    found = package(folder, model())
    return Place(found, found / "model.tflite")


def as_archive(folder: Path) -> Place:
    found = Path(shutil.make_archive(str(folder / "packed"), "zip", package(folder, model())))
    return Place(found, found)


def as_neighbor(folder: Path) -> Place:
    (folder / "main.circle").write_bytes(running("beside.tflite"))
    (folder / "beside.tflite").write_bytes(model())
    return Place(folder / "main.circle", folder / "beside.tflite")


SMALL, LARGE = 1 << 20, 1 << 10
"""Size limits up to which a file is copied when opened: above and below the size of the models here."""

KINDS: dict[str, tuple[Callable[[Path], Place], int]] = {
    "small file": (as_file, SMALL),
    "large file": (as_file, LARGE),
    "small model of a directory": (as_directory, SMALL),
    "large model of a directory": (as_directory, LARGE),
    "archive": (as_archive, LARGE),
    "model beside a model": (as_neighbor, LARGE),
}
CHANGES = (truncated, overwritten, replaced, appended)


class Other:
    """A process that runs the CHILD script on request."""

    def __init__(self, cache: Path, held: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(held)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ONERT_CACHE_DIR": str(cache)},
        )

    def use(self, path: Path, stage: str, change: Callable[[], None] | None = None) -> str:
        """The outcome of loading, compiling and running a model, with `change` applied at a stage."""
        self._send(json.dumps({"path": str(path), "stage": stage}))
        if change is None:
            return self._answer()
        said = self._answer()
        if said != "reached":
            return f"{said} before the change"
        change()
        self._send("go on")
        return self._answer()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        return line or f"ended with {self._process.wait()}"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[int], Other]]:
    begun: list[Other] = []

    def start(held: int) -> Other:
        begun.append(Other(tmp_path / "cache", held))
        return begun[-1]

    yield start
    for each in begun:
        each.close()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "all"])
@pytest.mark.parametrize("cached", ["new", "known"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_changed_while_in_use_keeps_its_original_content_or_is_refused(
    kind: str, cached: str, every: bool, tmp_path: Path, start: Callable[[int], Other]
) -> None:
    """Each change at every other stage, in the long suite at all."""
    turn = list(KINDS).index(kind) + (cached == "new")
    make, held = KINDS[kind]
    other = start(held)
    place = make(tmp_path)
    content = place.changed.read_bytes()
    for change, stage in product(CHANGES, STAGES):
        if not every and (turn + CHANGES.index(change) + STAGES.index(stage)) % 2:
            continue
        place.changed.write_bytes(content)
        if cached == "new":
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        else:
            assert other.use(place.path, "") == "original"
        refused = {"refused: the file was written to after it was loaded; load it again"}
        reread = cached == "known" and held == LARGE and kind.startswith("large") and stage != "shape"
        allowed = {"original"} | (refused if reread and change in (truncated, overwritten) else set())
        assert other.use(place.path, stage, partial(change, place.changed)) in allowed, f"{change.__name__} at {stage}"


def test_a_cache_entry_changed_while_in_use_keeps_its_original_content(
    tmp_path: Path, start: Callable[[int], Other]
) -> None:
    other = start(SMALL)
    path = tmp_path / "model.tflite"
    path.write_bytes(model(FEW))
    for change, stage in product(CHANGES, STAGES):
        assert other.use(path, "") == "original"
        entry = max((tmp_path / "cache").glob("*.onert"), key=lambda path: path.stat().st_size)
        assert entry.stat().st_size > FEW * 4
        assert other.use(path, stage, partial(change, entry)) == "original", f"{change.__name__} at {stage}"
