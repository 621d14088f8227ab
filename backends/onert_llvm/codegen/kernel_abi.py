"""The binary interface of kernels: `void kernel(ptr task, i64 begin, i64 end, i64 thread)`.

`task` points to 8-byte slots (pointers, 64-bit integers, bits of a float32) in the order of a `TaskLayout`; `begin` and
`end` bound a range of independent work tiles, so that any number of threads may share them. `thread` is the calling
thread's number within the run, which selects its own scratch memory. A kernel keeps nothing between calls, and equal
specs give the same code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from onert.ir.process.digests import digest
from onert.ir.symbolic.leaks import require_plain
from onert.ir.value import ByIdentity, Value
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, I8, I64, PTR, Block, Kernel, Module, Type, Val, View
from onert_llvm.target.isa import Isa


@frozen(eq=False)
class Task(ByIdentity):
    """The slots of a task, as read by a kernel under construction."""

    k: Kernel
    layout: TaskLayout
    _read: dict[tuple[Block, str, Type], Val] = field(factory=dict, init=False, repr=False)
    _before: list[Block] = field(factory=list, init=False, repr=False)

    def ptr(self, name: str) -> Val:
        return self._slot(name, PTR)

    def i64(self, name: str) -> Val:
        return self._slot(name, I64)

    def f32(self, name: str) -> Val:
        return self._slot(name, F32)

    def view(self, name: str, element: Type, *strides: Val | int) -> View:
        """The memory that a slot points to."""
        return self.k.view(self.ptr(name), element, *strides)

    def own(self, rooms: str, each: str) -> Val:
        """The address of the calling thread's part of scratch memory; slot `each` has a part's size in bytes."""
        return self.view(rooms, I8, self.i64(each))[self.k.arg("thread")].address

    def report(self, number: Val, slot: str = "report") -> None:
        """Record an element that broke the rule of a slot."""
        report = self.view(slot, I64, 1)
        report[1].store(number)
        report[0].store(self.k.index(1))

    def _slot(self, name: str, t: Type) -> Val:
        """The value of a slot, read once per basic block, since slots never change."""
        block = self._before[-1] if self._before else self.k.b.block
        at = (block, name, t)
        if at not in self._read:
            with self.k.b.at(block):
                here = self.k.view(self.k.arg("task"), I64, 1)[self.layout.slot(name)]
                self._read[at] = View(here.b, here.base, t, ()).load(align=8)
        return self._read[at]

    @contextmanager
    def read_before(self) -> Iterator[None]:
        """Read what the following code, for example a loop, needs of the slots before it, in the current block."""
        self._before.append(self.k.b.block)
        yield
        self._before.pop()


class Algorithm(Protocol):
    """What a kernel computes and how: a frozen value that has its task's slots and emits its code."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its task's slots, in order."""

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        """Emit the body of the function for the work tiles from `begin` up to `end`."""


@runtime_checkable
class Composed(Protocol):
    """An algorithm named by its parts; others are named after their class."""

    @property
    def name(self) -> str: ...


@frozen
class KernelSpec(Value):
    """A kernel: an algorithm for a target. Its symbol contains a digest of everything that determines the code.

    Raises LeakError if the algorithm contains a symbolic number.
    """

    algorithm: Algorithm
    isa: Isa
    digest: str = field(init=False, repr=False, eq=False)
    name: str = field(init=False, repr=False, eq=False)
    layout: TaskLayout = field(init=False, repr=False, eq=False)

    @digest.default
    def _digest(self) -> str:
        text = f"{self.algorithm!r} {self.isa!r}"
        require_plain(self.algorithm, text)
        return digest(text.encode()).hexdigest()[:16]

    @name.default
    def _name(self) -> str:
        kind = type(self.algorithm).__name__
        return self.algorithm.name if isinstance(self.algorithm, Composed) else _CAPITAL.sub("_", kind).lower()

    @layout.default
    def _layout(self) -> TaskLayout:
        return TaskLayout(self.algorithm.slots)

    @property
    def symbol(self) -> str:
        return f"{self.name}_{self.digest}"


_CAPITAL = re.compile("(?<=[a-z0-9])(?=[A-Z])")
"""The start of another word in a class name."""


def build(spec: KernelSpec, own_target: bool = False) -> Module:
    """The module that defines the kernel's symbol and exports nothing else.

    With `own_target` its functions carry their processor, so that code for several can be in one object.
    """
    isa = spec.isa
    target = f'"target-cpu"="{isa.cpu}" "target-features"="{isa.features}"' if own_target else ""
    module = Module(spec.symbol, isa.triple, target)
    k = Kernel(module, spec.symbol, {"task": PTR, "begin": I64, "end": I64, "thread": I64}, spec.isa)
    spec.algorithm.emit(k, Task(k, spec.layout), k.arg("begin"), k.arg("end"))
    k.finish()
    return module
