"""The conformance kit passes correct backends and catches each kind of fault."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from attrs import evolve, frozen
from shared_material import REPOSITORY

from onert.backend import Backend, Group, HostMemory, Kernel, Memory, Sequence, Settings, Tensors
from onert.backend.registry import load_backend
from onert.backend.testing import CLAIMS, TRIALS, Misaligned, Skipped, Trial, align, hold
from onert.backend.testing import __main__ as kit
from onert.backend.testing.trial import compare
from onert.compiler.scheduler.manual import why_not
from onert.ir import Array, BackendError, CallTypes, Context, Operation, TensorType
from onert.ir.ops.elementwise.binary import Binary, BinaryKind


@pytest.mark.parametrize("trial", TRIALS, ids=str)
@pytest.mark.parametrize("name", ["llvm", "reference"])
def test_the_projects_backends_pass_every_trial(name: str, trial: Trial) -> None:
    try:
        align(load_backend(name), trial)
    except Skipped as reason:
        pytest.skip(str(reason))


OF_KERNELS = {"its_kernels_serve_many_executions", "its_kernels_run_in_several_threads", "it_runs_sequences"}
"""Claims about the kernels of trials; `builtin` supports none of their operations."""


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        pytest.param(name, claim, id=f"{name}-{claim.__name__}")
        for name, claim in product(("llvm", "reference", "builtin"), CLAIMS)
        if name != "builtin" or claim.__name__ not in OF_KERNELS
    ],
)
def test_the_projects_backends_keep_the_contract(name: str, claim: Callable[[Backend], None]) -> None:
    hold(load_backend(name), claim)


def test_trials_have_unique_names_and_reproducible_inputs() -> None:
    assert len({trial.name for trial in TRIALS}) == len(TRIALS) > 200
    one, two = TRIALS[0].inputs(), TRIALS[0].inputs()
    assert [a.tobytes() for a in one] == [a.tobytes() for a in two]


Do = Callable[[Sequence, Tensors], None]


@frozen(eq=False)
class Wrong(Backend):
    """Adds floats, then does something forbidden."""

    then: Do
    api_version = 2
    name = "wrong"

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        op = operation.op
        plain = all(t is not None and t.is_static and t.dtype.is_float for t in types.inputs)
        return None if plain and op == Binary(BinaryKind.ADD) else "only plain additions"

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return WrongKernel(sequence, self.then)


@frozen(eq=False)
class WrongKernel:
    sequence: Sequence
    then: Do

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        def run() -> None:
            for operation in self.sequence.body:
                (a, b), (out,) = operation.used, operation.outputs
                np.add(tensors[a].array, tensors[b].array, out=tensors[out].array)
            self.then(self.sequence, tensors)

        return run


def result(sequence: Sequence, tensors: Tensors) -> Array:
    return tensors[sequence.outputs[0]].array


def wrong_number(sequence: Sequence, tensors: Tensors) -> None:
    result(sequence, tensors).reshape(-1)[-1] += 0.01


def overrun(sequence: Sequence, tensors: Tensors) -> None:
    array = result(sequence, tensors)
    behind = np.lib.stride_tricks.as_strided(array.reshape(-1), (array.size + 1,), (4,))
    behind[-1] = 0.0


def changed_operand(sequence: Sequence, tensors: Tensors) -> None:
    tensors[sequence.inputs[0]].array[...] = 0


ADD = next(trial for trial in TRIALS if trial.name == "ADD f32 (3, 5)")


@pytest.mark.parametrize(
    ("then", "sentence"),
    [
        (wrong_number, r"result 0 differs in 1 of 15 elements, first at \(2, 4\)"),
        (overrun, "writes outside of its results"),
        (changed_operand, "changes its operand 0"),
    ],
)
def test_a_faulty_kernel_is_caught(then: Do, sentence: str) -> None:
    align(Wrong(lambda sequence, tensors: None), ADD)
    with pytest.raises(Misaligned, match=sentence):
        align(Wrong(then), ADD)


def violations(backend: Backend) -> dict[str, str]:
    """The messages of violated claims, by claim."""
    found = {}
    for claim in CLAIMS:
        try:
            hold(backend, claim)
        except Misaligned as error:
            found[claim.__name__] = str(error)
    return found


def test_a_backend_that_breaks_the_contract_is_caught() -> None:
    right = Wrong(lambda sequence, tensors: None)
    assert violations(right) == {}

    class Old(Wrong):
        api_version = 0

    class Silent(Wrong):
        def supports(self, operation: Operation, types: CallTypes) -> str | None:
            return "" if super().supports(operation, types) else None

    class Forgetful(Wrong):
        def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
            return (Group(sequence.operations[:1]),)

        def supports(self, operation: Operation, types: CallTypes) -> str | None:
            return None if isinstance(operation.op, Binary) else "only two operands"

    class Sticky(Wrong):
        def generate(self, sequence: Sequence, settings: Settings) -> StickyKernel:
            return StickyKernel(super().generate(sequence, settings))

    class Enqueuing(Wrong):
        def generate(self, sequence: Sequence, settings: Settings) -> EnqueuingKernel:
            return EnqueuingKernel(super().generate(sequence, settings))

    class Idle(HostMemory):
        def copy(self, source: Array, target: Array, type_: TensorType) -> None:
            """Copies nothing."""

    class Lazy(Wrong):
        @property
        def memory(self) -> Memory:
            return Idle()

    nothing = right.then
    assert violations(Enqueuing(nothing)) == {
        "its_calls_are_work_in_a_queue": "its calls only enqueue, but its memory has no queue"
    }
    assert set(violations(Lazy(nothing))) == {"its_memory_keeps_what_is_put_in"}
    assert violations(Old(nothing)) == {"it_says_who_it_is": "it is made for version 0, this is 2"}
    assert set(violations(Silent(nothing))) == {"it_answers_for_every_operation"}
    assert violations(Forgetful(nothing))["it_runs_sequences"] == (
        "fuse returned operations [0], expected each of 0, 1, 2 once"
    )
    assert "its_kernels_serve_many_executions" in violations(Sticky(nothing))


class StickyKernel:
    """Always uses the first tensors it was bound to."""

    def __init__(self, inner: Kernel) -> None:
        self._inner = inner
        self._first: Tensors | None = None

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        self._first = self._first or tensors
        return self._inner.bind(self._first, context)


class EnqueuingKernel:
    """Declares that its calls enqueue work."""

    def __init__(self, inner: Kernel) -> None:
        self._inner = inner

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        call = self._inner.bind(tensors, context)
        call.queue = object()  # type: ignore[attr-defined] # functions accept new attributes
        return call


def test_a_tolerance_is_relative_for_floats_and_in_units_for_integers() -> None:
    loose = evolve(ADD, tolerance=0.1)
    align(Wrong(wrong_number), loose)


@pytest.mark.parametrize(
    ("tolerance", "off", "right"),
    [
        (0.0, 0, True),
        (0.0, 1, False),
        (0.9, 1, False),
        (1.0, 1, True),
        (1.0, 2, False),
        (2.5, 2, True),
        (2.5, 3, False),
    ],
)
def test_integers_may_differ_by_the_whole_units_of_the_tolerance(tolerance: float, off: int, right: bool) -> None:
    expected = np.arange(8, dtype=np.int8)
    found = expected.copy()
    found[3] += off
    if right:
        compare("a result", found, expected, tolerance)
    else:
        with pytest.raises(Misaligned, match=r"differs in 1 of 8 elements, first at \(3,\)"):
            compare("a result", found, expected, tolerance)


def test_the_kit_runs_on_the_command_line() -> None:
    command = [sys.executable, "-m", "onert.backend.testing"]
    done = subprocess.run([*command, "reference"], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == f"{len(TRIALS) + len(CLAIMS)} held, 0 skipped, 0 FAILED"
    missing = subprocess.run([*command, "nowhere:X"], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert missing.returncode == 1
    assert "backend 'nowhere:X' at nowhere:X cannot be loaded: ModuleNotFoundError" in missing.stderr


@frozen(eq=False)
class Answering(Wrong):
    """`supports` returns something other than None or a sentence for an addition."""

    answer: object = True

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        return super().supports(operation, types) or self.answer  # type: ignore[return-value]


def raising(sequence: Sequence, tensors: Tensors) -> None:
    raise ZeroDivisionError("division by zero")


@frozen(eq=False)
class Idle(Wrong):
    """Supports nothing."""

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        return "nothing is supported"


SHELL: dict[str, tuple[Backend, str, int]] = {
    "right": (Wrong(lambda sequence, tensors: None), "held     ADD f32 (3, 5)", 0),
    "a raising kernel": (Wrong(raising), "FAILED   ADD f32 (3, 5): ZeroDivisionError: division by zero", 1),
    "True": (Answering(raising), "FAILED   ADD f32 (3, 5): ADD f32 (3, 5): supports returned True, expected None", 1),
    "False": (
        Answering(raising, False),
        "FAILED   ADD f32 (3, 5): ADD f32 (3, 5): supports returned False, expected",
        1,
    ),
    "nothing": (Idle(raising), "no trial held: the backend supports none of their operations", 1),
}


@pytest.mark.parametrize(("backend", "line", "status"), SHELL.values(), ids=SHELL.keys())
def test_the_kit_prints_one_line_per_verdict_whatever_a_backend_does(
    backend: Backend, line: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kit, "load_backend", lambda name: backend)
    monkeypatch.setattr(kit, "CLAIMS", CLAIMS[:1])
    monkeypatch.setattr(kit, "TRIALS", [trial for trial in TRIALS if trial.name.startswith("ADD f32")])
    assert kit.main(["wrong"]) == status
    assert any(printed.startswith(line) for printed in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("answer", [True, False, 0, 3])
def test_the_compiler_rejects_an_answer_of_supports_that_is_not_a_sentence(answer: object) -> None:
    graph = ADD.subgraph
    (operation,) = graph.operations
    with pytest.raises(BackendError, match=f"backend wrong returns {answer!r} as its support for .*, expected None"):
        why_not(Answering(raising, answer), operation, graph.types(operation))
