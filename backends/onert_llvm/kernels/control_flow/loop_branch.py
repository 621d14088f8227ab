"""Loops and branches over commands: kernels that run programs of others, as `codegen/native/pool.ll` lays them out."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import I8, I64, PTR, Kernel, Val

RUN_LOOP, RUN_BRANCH = "run_loop", "run_branch"
"""The names of the kernels: who calls commands himself does without them."""

_WORDS, REPORT_WORDS = 8, 2
"""64-bit words of a command, and of the report of a check."""


def run_program(k: Kernel, task: Task, name: str) -> None:
    """Run the commands that slot `name` points to, `{name}_count` of them, one after the other."""
    rows = task.view(name, I64, _WORDS, 1)
    with k.loop(task.i64(f"{name}_count")) as at:
        row = rows[at]
        function, inner = (k.view(row[word].address, PTR, 1)[0].load(align=8) for word in (0, 1))
        k.call_at(function, inner, k.index(0), row[2].load())


@frozen
class RunLoop(Value):
    """Run `condition`, and as long as the byte at `goes_on` is set then, `body` and `condition` again. One work tile.

    It ends when one of so many `checks`, whose reports lie at `reports`, is found broken. With `bounded` there are
    `most` rounds at the most: 1 and their number go to `report` where it would go on.
    """

    bounded: bool

    @property
    def name(self) -> str:
        return RUN_LOOP

    @property
    def layout(self) -> TaskLayout:
        bound = ("most", "report") if self.bounded else ()
        programs = ("condition", "condition_count", "body", "body_count")
        return TaskLayout(("goes_on", *programs, "reports", "checks", *bound))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rounds = k.view(k.scratch(I64, 1), I64, 1)[0]
        rounds.store(k.index(0))

        def goes_on() -> Val:
            run_program(k, task, "condition")
            set_ = task.view("goes_on", I8, 1)[0].load().ne(0) & _kept(k, task)
            return set_ & self._allowed(k, task, rounds.load(), set_) if self.bounded else set_

        with k.repeat(goes_on):
            rounds.store(rounds.load() + 1)
            run_program(k, task, "body")

    @staticmethod
    def _allowed(k: Kernel, task: Task, rounds: Val, wanted: Val) -> Val:
        allowed = rounds < task.i64("most")
        with k.when(wanted & allowed.eq(0)):
            report = task.view("report", I64, 1)
            report[1].store(rounds)
            report[0].store(k.index(1))
        return allowed


def _kept(k: Kernel, task: Task) -> Val:
    """Whether no check was found broken."""
    broken = k.var(k.index(0))
    with k.loop(task.i64("checks")) as at:
        broken.set(broken.get() | task.view("reports", I64, REPORT_WORDS, 1)[at, 0].load())
    return broken.get().eq(0)


@frozen
class RunBranch(Value):
    """Run `then` where the byte at `condition` is set, else `otherwise`. One work tile."""

    @property
    def name(self) -> str:
        return RUN_BRANCH

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("condition", "then", "then_count", "otherwise", "otherwise_count"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        chosen = task.view("condition", I8, 1)[0].load().ne(0)
        with k.either(chosen) as (then, otherwise):
            with then:
                run_program(k, task, "then")
            with otherwise:
                run_program(k, task, "otherwise")
