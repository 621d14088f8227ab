"""The binary interface of kernels: `void kernel(ptr task, i64 begin, i64 end, i64 thread)`.

`task` points to 8-byte slots (pointers, 64-bit integers, bits of a float32) whose order a `TaskLayout` states; `begin`
and `end` bound a range of independent work tiles, so that any number of threads may share them. `thread` is the number
of the one that calls among those of a run, so that each can have scratch memory of its own. A kernel keeps nothing
between calls and equal specs give the same code.
"""

from __future__ import annotations

import re
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from onert.ir.process.digests import digest
from onert.ir.value import Told, Value
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, I8, I64, PTR, Block, Kernel, Module, Type, Val, View
from onert_llvm.target.isa import Isa


@frozen(eq=False)
class Task(Told):
    """The slots as a kernel under construction reads them."""

    k: Kernel
    layout: TaskLayout
    _read: dict[tuple[Block, str, Type], Val] = field(factory=dict, init=False, repr=False)

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
        """Where the calling thread's part of scratch memory begins, of which each has so many bytes."""
        return self.view(rooms, I8, self.i64(each))[self.k.arg("thread")].address

    def report(self, number: Val) -> None:
        """Write down an element that broke the rule of slot `report`."""
        report = self.view("report", I64, 1)
        report[1].store(number)
        report[0].store(self.k.index(1))

    def _slot(self, name: str, t: Type) -> Val:
        """What the slot holds, read once in a block of instructions: nothing changes it."""
        at = (self.k.b.block, name, t)
        if at not in self._read:
            here = self.k.view(self.k.arg("task"), I64, 1)[self.layout.slot(name)]
            self._read[at] = View(here.b, here.base, t, ()).load(align=8)
        return self._read[at]


class Algorithm(Protocol):
    """What a kernel computes and how: a frozen value that knows its task and writes its code."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its task's slots, in order."""

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        """The body of the function for the work tiles from `begin` up to `end`."""


@runtime_checkable
class Composed(Protocol):
    """An algorithm named by its parts; others are named by their class."""

    @property
    def name(self) -> str: ...


@frozen
class KernelSpec(Value):
    """A kernel: an algorithm for a target. Its symbol is a digest of all that decides the code."""

    algorithm: Algorithm
    isa: Isa
    digest: str = field(init=False, repr=False, eq=False)
    name: str = field(init=False, repr=False, eq=False)
    layout: TaskLayout = field(init=False, repr=False, eq=False)

    @digest.default
    def _digest(self) -> str:
        return digest(f"{self.algorithm!r} {self.isa!r}".encode()).hexdigest()[:16]

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
"""Where another word begins in the name of a class."""


def build(spec: KernelSpec, own_target: bool = False) -> Module:
    """The module that defines the kernel's symbol and nothing else that is exported.

    With `own_target` its functions say what processor they are for, so that code for several lies in one object.
    """
    isa = spec.isa
    target = f'"target-cpu"="{isa.cpu}" "target-features"="{isa.features}"' if own_target else ""
    module = Module(spec.symbol, isa.triple, target)
    k = Kernel(module, spec.symbol, {"task": PTR, "begin": I64, "end": I64, "thread": I64}, spec.isa)
    spec.algorithm.emit(k, Task(k, spec.layout), k.arg("begin"), k.arg("end"))
    k.finish()
    return module
