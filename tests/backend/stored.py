"""A kernel of test backends."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.backend import Sequence, Tensors
from onert.ir import Array, Context, Op


@frozen(eq=False)
class StoredKernel:
    """Runs a sequence on the arrays as they are stored: `run` writes an operation's result, given its operands."""

    sequence: Sequence
    run: Callable[[Op, list[Array], Array], None]

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        def run() -> None:
            for operation in self.sequence.body:
                self.run(
                    operation.op, [tensors[i].buffer for i in operation.used], tensors[operation.outputs[0]].buffer
                )

        return run
