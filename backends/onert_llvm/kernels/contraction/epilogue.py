"""What is applied to a float32 accumulator before it is stored: bias, residual, activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Fn, Leaf, evaluate, is_cheap, leaves

from .contraction import Ending, Finish, Sums
from .register_tile import Block, Row

ACC = Leaf("acc")
"""The accumulator in an epilogue's tree."""

RESIDUAL = "residual"
"""The slot of a matrix that may be added to the accumulator."""

_NONE: Mapping[str, Val] = {}


@frozen
class Epilogue(Ending):
    """`tree` computes the stored value from `ACC` and other leaves.

    With `bias` the accumulator starts at `bias[column]`. A leaf listed in `columns` is a vector with one element per
    column, one in `numbers` a float32 in the slot itself; any other leaf is a matrix with the output's rows and columns
    (slot `NAME_stride`: elements per row). With `residual` such a matrix is added to the accumulator first, unless its
    slot is 0.
    """

    tree: Expr = ACC
    bias: bool = False
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    residual: bool = False

    @property
    def is_cheap(self) -> bool:
        return is_cheap(self.tree)

    @property
    def slots(self) -> tuple[str, ...]:
        names = (*(n for n in leaves(self.tree) if n != ACC.name), *((RESIDUAL,) if self.residual else ()))
        matrices = (n for n in names if n not in (*self.columns, *self.numbers))
        return (*(("bias",) if self.bias else ()), *names, *(f"{n}_stride" for n in matrices))

    @property
    def matrices(self) -> tuple[str, ...]:
        """The leaves that are matrices."""
        return tuple(n for n in leaves(self.tree) if n not in (ACC.name, *self.columns, *self.numbers))

    def given(self, task: Task, lanes: int) -> dict[str, Val]:
        """The task's numbers, broadcast to `lanes` lanes."""
        return {name: task.f32(name).splat(lanes) for name in self.numbers}

    def start(self, k: Kernel, task: Task, column: Val, lanes: int, mask: Val | None) -> Val:
        """The initial accumulators of a vector of columns."""
        if not self.bias:
            return k.zeros(F32, lanes)
        return task.view("bias", F32, 1)[column].load(lanes, mask)

    def apply(
        self,
        k: Kernel,
        task: Task,
        acc: Val,
        column: Val,
        rows: Mapping[str, View],
        mask: Val | None,
        given: Mapping[str, Val] = _NONE,
    ) -> Val:
        """The value to store for a vector of columns from `column` on; `rows` are its places in the matrices.

        `given` are the broadcast numbers.
        """

        def leaf(name: str) -> Val:
            if name == ACC.name:
                return acc
            if name in self.numbers:
                return given[name]
            if name in self.columns:
                return task.view(name, F32, 1)[column].load(acc.lanes, mask)
            return rows[name].load(acc.lanes, mask)

        return evaluate(k, self.tree, leaf, acc)

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return self.start(k, task, block.at(vector), k.isa.f32, block.masks[vector])

    def add_residual(self, k: Kernel, task: Task, block: Block, sums: Sums) -> Sums:
        """The sums plus the residual, if there is one."""
        if not self.residual:
            return sums
        acc = [[k.var(x) for x in row] for row in sums]
        with k.when(task.i64(RESIDUAL).ne(0)):
            (matrix,) = row_windows(k, task, (RESIDUAL,)).values()
            for row, own in zip(block.results(), acc, strict=True):
                for j, x in enumerate(own):
                    x.set(row.place(matrix, j).load(k.isa.f32, block.masks[j]) + x.get())
        return [[x.get() for x in row] for row in acc]

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        given, matrices = self.given(task, k.isa.f32), row_windows(k, task, self.matrices)

        def column(j: int) -> Finish:
            def value(row: Row, acc: Val) -> Val:
                others = {n: row.place(v, j) for n, v in matrices.items()}
                return self.apply(k, task, acc, block.at(j), others, block.masks[j], given)

            return value

        return column


PLAIN = Epilogue()
"""The identity: accumulators are stored unchanged."""

LOW, HIGH = "low", "high"
BOUNDED = Apply(Fn.MIN, (Leaf(HIGH), Apply(Fn.MAX, (Leaf(LOW), ACC))))
"""The tree that clamps an accumulator between two numbers: serves every clamping activation, and no activation."""


def row_windows(k: Kernel, task: Task, names: Sequence[str]) -> dict[str, View]:
    """Views of an epilogue's matrices."""
    return {n: task.view(n, F32, task.i64(f"{n}_stride"), 1) for n in names}
