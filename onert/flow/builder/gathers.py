"""Lookup by index, and assignments to variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onert.flow.graph import DT_FLOAT32, Operation, Variable
from onert.ir import ModelError

from .core import Core


class Gathers(Core):
    """Operations by index. The last dimension of indices is the number of leading dimensions of the table that they
    index; a scalar indexes one.
    """

    def gather(self, params: Any, indices: Any, oov: Any = None, name: str | None = None) -> Variable:
        """Rows of a table; with `oov`, that row for every negative index."""
        params, indices = self.value(params), self.value(indices)
        if indices.rank() == 0:
            shape = params.shape[1:]
        elif indices.rank() == 1:
            shape = [*indices.shape, *params.shape[1:]]
        else:
            shape = [*indices.shape[:-1], *params.shape[indices.shape[-1] :]]
        operands = [params, indices] if oov is None else [params, indices, oov]
        return self.made("Gather", operands, name, shape)

    def pooling_gather(
        self, optype: str, params: Any, indices: Any, batch: int | None = None, name: str | None = None
    ) -> Variable:
        """Rows of a table combined into one, by the name of the operation's type."""
        params, indices = self.value(params), self.value(indices)
        if indices.rank() < 1 or not 0 <= (batch or 0) < indices.rank():
            raise ModelError(f"indices {indices.shape} cannot be pooled with {batch or 0} batch dimensions")
        shape = [*indices.shape[: batch or 0], *params.shape[indices.shape[-1] :]]
        result = self.made(optype, [params, indices], name, shape)
        assert result.producer is not None
        if batch is not None:
            result.producer.add_attr("batch", batch)
        return result

    def gather_sum(self, params: Any, indices: Any, batch: int | None = None, name: str | None = None) -> Variable:
        """The sum of the rows; negative indices are ignored. `batch` leading dimensions of indices are preserved."""
        return self.pooling_gather("GatherSum", params, indices, batch, name)

    def gather_max(self, params: Any, indices: Any, batch: int | None = None, name: str | None = None) -> Variable:
        """The elementwise maximum of the rows."""
        return self.pooling_gather("GatherMax", params, indices, batch, name)

    def gather_avg(self, params: Any, indices: Any, batch: int | None = None, name: str | None = None) -> Variable:
        """The mean of the rows."""
        return self.pooling_gather("GatherAvg", params, indices, batch, name)

    def scatter(
        self,
        indices: Any,
        value: Any,
        shape: Sequence[int],
        batch: int | None = None,
        pooled: bool = False,
        name: str | None = None,
    ) -> Variable:
        """Zeros of a shape, with rows added at the indices; with `pooled`, one row for all indices of a batch."""
        result = self.made("Scatter", [indices, value], name, list(shape), self.value(value).type)
        self._placing(result.producer, batch, pooled)
        return result

    def _placing(self, operation: Any, batch: int | None, pooled: bool) -> None:
        if batch is not None:
            operation.add_attr("batch", batch)
        if pooled:
            operation.add_attr("pooled", True)

    def assign_add_scatter(
        self,
        var: Variable,
        indices: Any,
        value: Any,
        ref: bool = False,
        batch: int | None = None,
        pooled: bool = False,
        name: str | None = None,
    ) -> Variable | None:
        """Add rows to a variable at the indices; with `ref`, returns the resulting variable as a reference."""
        operation = self.rawop("AssignAddScatter", name)
        for operand in (var, indices, value):
            operation.add_input(self.value(operand))
        self._placing(operation, batch, pooled)
        if not ref:
            return None
        result = self.result(operation, var.type, var.shape)
        result.ref = True
        return result

    def onehot(self, index: Any, depth: int, value: Any = None, name: str | None = None) -> Variable:
        """1, or `value`, at the index along a new dimension of size `depth`, 0 elsewhere."""
        index = self.value(index)
        operands = [index] if value is None else [index, self.value(value)]
        behind, dtype = ([], DT_FLOAT32) if value is None else (operands[1].shape, operands[1].type)
        result = self.made("OneHot", operands, name, [*index.shape, depth, *behind], dtype)
        assert result.producer is not None
        result.producer.add_attr("depth", depth)
        return result

    def ref(self, instance: Variable, var: Variable, name: str | None = None) -> Variable:
        """A reference to a variable of an instance."""
        result = self.made("Reference", [instance], name, var.shape, var.type)
        assert result.producer is not None
        result.producer.add_attr("var", var.name)
        result.ref = True
        return result

    def assign(self, x: Variable, y: Any, name: str | None = None) -> Operation:
        """Add the operation, without a result, that assigns the elements of `y` to `x`."""
        operation = self.rawop("Assign", name)
        operation.add_input(x)
        operation.add_input(self.value(y))
        return operation
