"""The operations to interrupt: everything an application calls, on a model that counts its runs in several ways."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import numpy as np
from attrs import field, frozen
from counters import first_value, resource_sum
from shared_material import REPOSITORY

import onert
from onert.backend import Program
from onert.exec import Execution, SharedArena
from onert.exec.observers import MemoryTimeline, MinMax, Profile, Trace
from onert.ir import Array, DType, OnertError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
ROW = TensorType(DType.FLOAT32, (4,))
ONES = np.ones(4, np.float32)
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


def counter() -> Package:
    """Three branches that grow by x: a resource variable, a tensor that persists across runs, and a row of another
    tensor that is updated in place.
    """
    b = Builder()
    x = b.input(ROW, "x")
    total = resource_sum(b, x)
    kept = b.variable(ROW, "kept")
    other = b.add(ADD, kept, b.add(MUL, x, b.constant(ONES)))
    b.update(kept, other)
    table, first = b.variable(TensorType(DType.FLOAT32, (3, 4)), "table"), b.constant(np.int32([1, 0]))
    row = b.add(ADD, b.add(Slice(), table, first, b.constant(np.int32([1, 4]))), x)
    after = b.add(PutRow(), table, row, b.constant(np.int32(1)))
    b.update(table, after)
    third = b.add(Slice(), after, first, b.constant(np.int32([1, 4])))
    once = first_value(np.zeros(4, np.float32))
    return Package((Subgraphs((b.subgraph([total, other, third]), once)),), "counter")


def growing() -> Package:
    """The sum of an input of any length with itself."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None,)), "x")
    return Package((Subgraphs((b.subgraph([b.add(ADD, x, x)]),)),), "growing")


def numbers(outputs: Mapping[str, Array]) -> tuple[float, ...]:
    """The counts of a run; all elements of an output are equal."""
    for output in outputs.values():
        assert len(set(output.ravel().tolist())) == 1, outputs
    return tuple(float(output.ravel()[0]) for output in outputs.values())


@frozen(eq=False)
class Settings:
    """Process settings that must be restored."""

    collected: bool = field(factory=gc.isenabled)
    interval: float = field(factory=sys.getswitchinterval)

    def check(self) -> None:
        assert gc.isenabled() == self.collected, "the search for reference cycles stays switched off"
        assert abs(sys.getswitchinterval() - self.interval) < 1e-6, "the switch interval stays changed"


class Subject:
    """Something to interrupt repeatedly: `act` is interrupted, then `check` verifies the invariants."""

    def __init__(self) -> None:
        self.settings = Settings()

    def act(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        self.settings.check()


class Counting(Subject):
    """One execution of the counter: an interrupted run counts as a whole or not at all."""

    def __init__(self, act: Callable[[Execution], object], **options: object) -> None:
        super().__init__()
        self._act = act
        arena = SharedArena() if options.pop("shared", False) else None
        observers = (Profile(), MemoryTimeline(), Trace(), MinMax()) if options.pop("observed", False) else ()
        program = onert.compile(counter(), **options)  # type: ignore[arg-type]
        self.execution = Execution(program, arena=arena, observers=observers)
        self.other = Execution(program)
        self.others = 0.0
        self.count = numbers(self.execution.run([ONES]))[0]

    def act(self) -> None:
        self._act(self.execution)

    def check(self) -> None:
        super().check()
        self.execution._runs.wait()
        pending = self.execution._runner.pending
        if pending is not None:
            assert wait([pending], 60).done, "a run in the background does not end"
        found = numbers(self.execution.run([ONES]))
        assert len(set(found)) == 1, f"variables count {found} runs"
        assert found[0] in (self.count + 1, self.count + 2), f"after {self.count} runs the count is {found[0]}"
        self.count = found[0]
        self.others += 1
        assert numbers(self.other.run([ONES])) == (self.others,) * 3, "another execution counts wrong"


class Closing(Subject):
    """A new execution each time, closed while it runs in the background."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.program: Program = onert.compile(counter(), **options)  # type: ignore[arg-type]
        self.execution = Execution(self.program)

    def act(self) -> None:
        self.execution = Execution(self.program)
        with self.execution as execution:
            execution.set_input(0, ONES)
            execution.execute_async()

    def check(self) -> None:
        super().check()
        self.execution.close()
        try:
            self.execution.execute()
        except OnertError as error:
            assert "closed" in str(error)  # noqa: PT017 # what else it is is raised
        else:
            raise AssertionError("a closed execution runs")


class Shapes(Subject):
    """An execution whose input shape changes."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.execution = Execution(onert.compile(growing(), num_threads=1, **options))
        self.length = 0
        for _ in range(10):  # so that later changes to any length take the same path
            self.act()
            self.check()

    def act(self) -> None:
        self.length = self.length % 5 + 1
        self.execution.set_input_shape(0, (self.length,))

    def check(self) -> None:
        super().check()
        for length in (3, self.length):
            (found,) = self.execution.run([np.ones(length, np.float32)]).values()
            assert found.tolist() == [2.0] * length


class Resized(Shapes):
    """An execution whose inputs have another length for every run."""

    def act(self) -> None:
        self.length = self.length % 5 + 1
        self.execution.run([np.ones(self.length, np.float32)])


class Models(Subject):
    """A model that is loaded, compiled and run."""

    def act(self) -> None:
        program = onert.compile(onert.load(DIGITS), num_threads=2)
        with Execution(program) as execution:
            execution.run([np.zeros((1, 8, 8, 1), np.float32)])

    def check(self) -> None:
        super().check()
        self.act()


class Interpreting(Subject):
    """LiteRT's interface."""

    def __init__(self) -> None:
        super().__init__()
        self.content = next(DIGITS.glob("*.tflite")).read_bytes()
        self.interpreter = onert.Interpreter(model_content=self.content)

    def act(self) -> None:
        self.interpreter = onert.Interpreter(model_content=self.content)
        self.interpreter.allocate_tensors()
        self.interpreter.invoke()

    def check(self) -> None:
        super().check()
        interpreter = self.interpreter
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
        interpreter.invoke()
        scores = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert np.isfinite(scores).all()


def _in_background(execution: Execution) -> None:
    callbacks: list[Future[None]] = []
    execution.execute_async(callbacks.append).result(60)


def _cancelled(execution: Execution) -> None:
    execution.execute_async().cancel()


def _given(execution: Execution) -> None:
    execution.set_input(0, np.ones(8, np.float32)[::2])
    execution.execute()
    execution.get_output(0)


REFERENCE = {"backends": ("reference",), "num_threads": 1}
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "execute": lambda: Counting(Execution.execute, num_threads=1),
    "execute with a timeout": lambda: Counting(lambda e: e.execute(timeout=60), num_threads=1),
    "execute, reference": lambda: Counting(Execution.execute, **REFERENCE),
    "execute, Dataflow": lambda: Counting(Execution.execute, executor="Dataflow", **REFERENCE),
    "execute, Parallel": lambda: Counting(
        Execution.execute, executor="Parallel", backends=("reference",), num_threads=2
    ),
    "execute, shared arena": lambda: Counting(Execution.execute, shared=True, num_threads=1),
    "execute, observed": lambda: Counting(Execution.execute, observed=True, num_threads=1),
    "run": lambda: Counting(lambda e: e.run([ONES]), num_threads=1),
    "set_input": lambda: Counting(_given, num_threads=1),
    "execute_async": lambda: Counting(_in_background, num_threads=1),
    "execute_async, reference": lambda: Counting(_in_background, **REFERENCE),
    "cancel": lambda: Counting(_cancelled, num_threads=1),
    "close": lambda: Closing(num_threads=1),
    "set_input_shape": Shapes,
    "run, other shape": Resized,
    "set_input_shape, Dataflow": lambda: Shapes(executor="Dataflow"),
    "load, compile, run": Models,
    "Interpreter": Interpreting,
}
