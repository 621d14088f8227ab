"""The on-disk program cache: a later compilation finds a program whole, or compiles it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from compilations import compilations
from counters import first_value, resource_sum
from patience import PATIENCE
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.backend import tasks
from onert.backend.cache import HEADER, Cache
from onert.backend.writers import WRITERS, Writers
from onert.compiler.program_cache import other_shapes as programs
from onert.compiler.program_cache import parts
from onert.compiler.program_cache import serialize as cached
from onert.compiler.program_cache.records import Records
from onert.compiler.scheduler.exec_time import ExecTimes, save
from onert.exec.observers import Profile, Trace
from onert.ir import Array, DType, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.custom import Python
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert_reference import Reference

from .cached import Compiled

MODELS = sorted(p for p in (SHARED / "models").glob("*/*") if p.suffix in (".tflite", ".circle"))
DIGITS = [REPOSITORY / "nnpackage" / "examples" / name for name in ("digits_float", "digits_int8")]
ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
ROW, ONE = TensorType(DType.FLOAT32, (4,)), TensorType(DType.INT32, ())


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that stores every program."""
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(programs, "WORTH_CACHING", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    return Compiled(monkeypatch)


def image(program: onert.Program, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2, [d or 1 for d in i.shape]).astype(i.dtype.numpy) for i in program.inputs]


def outputs(program: onert.Program, seed: int = 0) -> list[Array]:
    return list(onert.Execution(program).run(image(program, seed)).values())


def same(a: list[Array], b: list[Array]) -> bool:
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def packaged(*graphs: Subgraph) -> Package:
    return Package((Subgraphs(graphs),), "made")


def sum_with(value: float) -> Package:
    b = Builder()
    return packaged(b.subgraph([b.add(ADD, b.input(ROW, "x"), b.constant(np.float32([value] * 4)))]))


@pytest.mark.parametrize("path", DIGITS, ids=lambda path: path.name)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["default", "reference"])
def test_a_cached_program_gives_the_same_results(
    path: Path, threads: int, backends: tuple[str, ...], compiled: Compiled
) -> None:
    first, second = (onert.compile(onert.load(path), num_threads=threads, backends=backends) for _ in range(2))
    assert compiled.count == 1
    assert first.describe() == second.describe()
    assert same(outputs(first), outputs(second))
    assert same(outputs(first, 7), outputs(second, 7))


@needs_shared
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.name, marks=pytest.mark.long if at % 3 else ()) for at, p in enumerate(MODELS)],
)
def test_the_cached_program_of_every_shared_model_gives_the_same_results(path: Path, compiled: Compiled) -> None:
    first, second = (onert.compile(onert.load(path), num_threads=1) for _ in range(2))
    assert compiled.count == 1
    assert first.describe() == second.describe()
    assert same(outputs(first), outputs(second))


def whole(directory: Path) -> Path:
    """The file of the program, which is larger than those of its kernels, once it has been written."""
    WRITERS.finish()
    return max(directory.glob("*.onert"), key=lambda path: path.stat().st_size)


def programs_in(directory: Path) -> list[Path]:
    """The entries other than digests of sources."""
    WRITERS.finish()
    return [path for path in directory.glob("*.onert") if b"digest\t" not in path.read_bytes()]


def test_a_program_compiled_faster_than_read_is_not_cached(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "WORTH_CACHING", 1e9)
    onert.compile(sum_with(3.0), num_threads=1, backends=("reference",))
    assert programs_in(directory) == []
    monkeypatch.setattr(programs, "WORTH_CACHING", 0.0)
    onert.compile(sum_with(3.0), num_threads=1, backends=("reference",))
    assert programs_in(directory) != []


def test_a_program_with_unstorable_kernels_is_not_cached(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reference, "keep", lambda self, kernel: None)
    onert.compile(sum_with(3.0), num_threads=1, backends=("reference",))
    assert programs_in(directory) == []


def test_an_unusable_entry_is_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    entry = cached.ProgramEntry(cache, lambda: "outline", lambda: "key", cached.Parts(()), {}, Records())
    for key in ("outline", "key"):
        assert cache.store(key, b"no program")
    assert entry.load() is None
    assert cache.load("key") is None
    assert cache.load("outline") is not None


def test_background_writes_are_complete_after_finish() -> None:
    writers, gate, written = Writers(), Event(), []

    def write() -> None:
        gate.wait()
        written.append(1)

    writers.begin(write)
    writers.begin(write)
    assert not written
    gate.set()
    writers.finish()
    assert written == [1, 1]
    writers.finish()


def test_a_write_is_synchronous_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(tasks, "start_new_thread", refuse)
    written: list[int] = []
    Writers().begin(lambda: written.append(1))
    assert written == [1]


def test_a_process_that_exits_immediately_leaves_a_complete_entry(directory: Path, compiled: Compiled) -> None:
    script = "import sys, onert; onert.compile(onert.load(sys.argv[1]), num_threads=1)"
    subprocess.run([sys.executable, "-c", script, str(DIGITS[0])], check=True)
    onert.compile(onert.load(DIGITS[0]), num_threads=1)
    assert compiled.count == 0
    assert not list(directory.glob(".new-*"))


def flipped(raw: bytearray) -> bytes:
    raw[len(raw) // 2] ^= 4
    return bytes(raw)


def foreign(raw: bytearray) -> bytes:
    """A valid entry whose content is not a program."""
    cache = Cache(Path(os.environ["ONERT_CACHE_DIR"]) / "other")
    cache.store("other", b"\x03" + b"\0" * 7 + b"\xff" * 64)
    return (cache.directory / "other.onert").read_bytes()


@pytest.mark.parametrize(
    "damage",
    [flipped, foreign, lambda raw: bytes(raw[:-1]), lambda raw: bytes(raw[: HEADER + 3]), lambda raw: b""],
    ids=["a bit", "foreign", "cut", "cut short", "empty"],
)
def test_a_program_with_a_damaged_entry_is_compiled_again(damage: Any, directory: Path, compiled: Compiled) -> None:
    package = onert.load(DIGITS[1])
    first = outputs(onert.compile(package))
    path = whole(directory)
    path.write_bytes(damage(bytearray(path.read_bytes())))
    assert same(outputs(onert.compile(package)), first)
    assert compiled.count == 2
    assert same(outputs(onert.compile(package)), first)
    assert compiled.count == 2


@pytest.mark.parametrize("which", ["directory", "file"])
def test_entries_that_others_could_have_written_are_not_used(which: str, directory: Path, compiled: Compiled) -> None:
    package = onert.load(DIGITS[1])
    onert.compile(package)
    assert whole(directory).stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    if which == "directory":
        directory.chmod(0o770)
    else:
        whole(directory).chmod(0o602)
    onert.compile(package)
    assert compiled.count == 2


def test_a_symbolic_link_in_the_cache_is_not_followed(directory: Path, tmp_path: Path, compiled: Compiled) -> None:
    package = onert.load(DIGITS[1])
    onert.compile(package)
    path = whole(directory)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    onert.compile(package)
    assert compiled.count == 2


def test_an_unwritable_cache_is_not_an_error(monkeypatch: pytest.MonkeyPatch, compiled: Compiled) -> None:
    monkeypatch.setenv("ONERT_CACHE_DIR", "/dev/null/cache")
    for count in (1, 2):
        onert.compile(sum_with(1))
        assert compiled.count == count


def twice(x: Array, *, options: bytes) -> Array:
    return 2 * x


def test_a_program_with_custom_python_operations_is_not_cached(compiled: Compiled) -> None:
    b = Builder()
    y = b.add(Python("Twice", twice, results=(ROW,)), b.input(ROW, "x"))
    for count in (1, 2):
        program = onert.compile(packaged(b.subgraph([y])))
        assert compiled.count == count
        (result,) = onert.Execution(program).run([np.float32([1, 2, 3, 4])]).values()
        assert result.tolist() == [2, 4, 6, 8]


def test_a_cached_program_can_be_compiled_for_other_shapes(compiled: Compiled) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 4)), "x")
    package = packaged(b.subgraph([b.add(MUL, x, b.constant(np.float32([1, 2, 3, 4])))]))
    onert.compile(package, input_shapes={"x": (2, 4)})
    execution = onert.Execution(onert.compile(package, input_shapes={"x": (2, 4)}))
    assert compiled.count == 1
    for rows in (2, 3, 2, 1):
        execution.set_input_shape("x", (rows, 4))
        (result,) = execution.run([np.ones((rows, 4), np.float32)]).values()
        assert result.tolist() == [[1, 2, 3, 4]] * rows
    assert compiled.count == 2  # the compiler was imported once, for the other shapes


def test_the_program_for_the_first_known_shapes_of_open_inputs_is_cached(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is the one for all lengths: a process that finds both compiles nothing."""
    b = Builder()
    inputs = [b.input(TensorType(DType.FLOAT32, (None, 4)), name) for name in "xy"]
    total = b.add(Binary(BinaryKind.ADD), *inputs)
    package = packaged(b.subgraph([b.add(MUL, total, b.constant(np.float32([1, 2, 3, 4])))]))
    made = compilations(monkeypatch)
    counts = []
    for _ in range(2):
        execution = onert.Execution(onert.compile(package))
        for at, rows in enumerate((2, 3, 5, 2)):
            (result,) = execution.run([np.ones((rows, 4), np.float32)] * 2).values()
            assert result.tolist() == [[2, 4, 6, 8]] * rows
            counts.append(len(made))
            WRITERS.finish()
            assert at or compiled.count == 1
        made.clear()
    assert counts == [2, 3, 3, 3, 0, 0, 0, 0]


def test_a_program_for_open_inputs_is_not_taken_for_a_tuned_one(compiled: Compiled) -> None:
    b = Builder()
    package = packaged(b.subgraph([b.add(ADD, *(b.input(TensorType(DType.FLOAT32, (None, 4)), n) for n in "xy"))]))
    onert.Execution(onert.compile(package, tune=0.01)).set_input_shapes({0: (3, 4), 1: (3, 4)})
    WRITERS.finish()
    onert.compile(package, tune=0.01, input_shapes={0: (3, 4), 1: (3, 4)})
    assert compiled.count == 2


def test_inputs_resized_one_by_one_find_the_program_for_all_of_them(compiled: Compiled) -> None:
    b = Builder()
    inputs = [b.input(TensorType(DType.FLOAT32, (None, 4)), name) for name in "xy"]
    package = packaged(b.subgraph([b.add(Binary(BinaryKind.ADD), *inputs)]))
    for _ in range(2):
        execution = onert.Execution(onert.compile(package))
        for name in "xy":
            execution.set_input(name, np.ones((3, 4), np.float32))
        execution.execute()
        assert execution.get_output(0).tolist() == [[2] * 4] * 3
        WRITERS.finish()
    assert compiled.count == 1


def test_loops_are_cached_with_their_bodies(compiled: Compiled) -> None:
    condition, body = Builder("condition"), Builder("body")
    x = condition.input(ONE, "x")
    less = condition.add(Comparison(ComparisonKind.LESS), x, condition.constant(np.int32(20)))
    more = body.add(ADD, body.input(ONE, "x"), body.constant(np.int32(3)))
    b = Builder()
    y = b.add(While(1, 2, (ONE,)), b.input(ONE, "x"))
    package = packaged(b.subgraph([y]), condition.subgraph([less]), body.subgraph([more]))
    for _ in range(2):
        execution = onert.Execution(onert.compile(package, num_threads=1))
        assert [int(next(iter(execution.run([np.int32(n)]).values()))) for n in (0, 19, 99)] == [21, 22, 99]
    assert compiled.count == 1


def counter() -> Package:
    """A resource variable and a variable tensor, both incremented by x in each run."""
    b = Builder()
    x = b.input(ROW, "x")
    total = resource_sum(b, x)
    cached = b.variable(ROW, "kept")
    other = b.add(ADD, cached, x)
    b.update(cached, other)
    return packaged(b.subgraph([total, other]), first_value(np.zeros(4, np.float32)))


def test_variables_of_a_cached_program_start_with_their_initial_values(compiled: Compiled) -> None:
    ones = np.ones(4, np.float32)
    for _ in range(2):
        program = onert.compile(counter())
        for _ in range(2):
            execution = onert.Execution(program)
            totals = [[y.tolist() for y in execution.run([ones]).values()] for _ in range(3)]
            assert totals == [[[n] * 4] * 2 for n in (1.0, 2.0, 3.0)]
    assert compiled.count == 1


def test_observers_see_the_same_events_for_a_cached_program(tmp_path: Path, compiled: Compiled) -> None:
    seen = []
    for _ in range(2):
        profile, trace = Profile(), Trace(tmp_path / "trace.json")
        program = onert.compile(onert.load(DIGITS[1]), num_threads=1)
        with onert.Execution(program, observers=(profile, trace)) as execution:
            execution.run(image(program))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        rows = sorted((r.label, r.backend, r.runs) for r in profile.rows)  # the profile has the longest first
        seen.append((rows, [e.get("name") for e in events]))
    assert compiled.count == 1
    assert seen[0] == seen[1]


@pytest.mark.parametrize("option", [{"graph_dot_dump": 1}, {"use_scheduler": True}], ids=["files", "times"])
def test_programs_that_use_measured_times_or_write_files_are_not_cached(
    option: dict[str, Any], tmp_path: Path, compiled: Compiled
) -> None:
    save(ExecTimes(), tmp_path / "exec_time.json")
    for count in (1, 2):
        onert.compile(sum_with(1), workspace_dir=str(tmp_path), **option)
        assert compiled.count == count


@pytest.mark.parametrize("own", [0, parts._INLINE_BYTES])
def test_constants_of_a_cached_program_are_not_copied(
    own: int, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_INLINE_BYTES", own)
    package = onert.load(DIGITS[0])
    onert.compile(package)
    program = onert.compile(package)
    given = [o.data.array for o in package.model.primary.operands if o.data is not None]
    arrays = [a for step in program.main.steps for a in getattr(step.kernel, "lowered", step).constants]
    assert arrays
    assert not any(a.flags.owndata or a.flags.writeable or a.ctypes.data % 64 for a in arrays)
    found = [o.data.array for o in program.main.subgraph.operands if o.data is not None]
    shared = [any(np.shares_memory(a, b) for b in given) for a in found]
    assert any(shared) == (own == 0)
    assert not any(a.flags.owndata for a in found)


def test_concurrent_processes_give_the_same_results(directory: Path) -> None:
    program = (
        "import sys, numpy as np, onert\n"
        "p = onert.compile(onert.load(sys.argv[1]), num_threads=1)\n"
        "x = np.arange(64, dtype=np.int8).reshape(p.inputs[0].shape)\n"
        "print(next(iter(onert.Execution(p).run([x]).values())).tolist())\n"
    )
    command = [sys.executable, "-c", program, str(DIGITS[1])]
    for _ in range(2):
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        assert len({each.communicate(timeout=PATIENCE)[0] for each in running}) == 1
        assert all(each.returncode == 0 for each in running)
    assert not list(directory.glob(".new-*"))
