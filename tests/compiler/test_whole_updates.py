"""Updates as large as the tensor that they update."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.compiler.passes.remove_identities import remove_identities
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.op import Op
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, PutRow
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicUpdateSlice

FLOAT, INT = TensorType(DType.FLOAT32, (2, 3)), TensorType(DType.INT32, ())


@pytest.mark.parametrize(
    ("op", "rows", "starts", "goes"),
    [
        (DynamicUpdateSlice(), 2, [(2,)], True),
        (HloDynamicUpdateSlice(), 2, [(), ()], True),
        (DynamicUpdateSlice(), 1, [(2,)], False),
        (PutRow(), 2, [()], False),  # another index than 0 has to be reported
    ],
    ids=str,
)
def test_an_update_of_the_whole_tensor_is_the_new_tensor_wherever_it_starts(
    op: Op, rows: int, starts: list[tuple[int, ...]], goes: bool
) -> None:
    b = Builder()
    x, update = b.input(FLOAT), b.input(FLOAT.with_shape((rows, 3)))
    graph = b.subgraph([b.add(op, x, update, *(b.input(INT.with_shape(shape)) for shape in starts))])
    after = remove_identities(graph)
    assert after.outputs == ((update,) if goes else graph.outputs)
    assert bool(after.operations) is not goes


@pytest.mark.parametrize("backends", [("reference",), ("llvm", "reference")], ids=str)
def test_a_variable_whose_whole_content_is_updated_has_the_new_one_in_the_next_run(backends: tuple[str, ...]) -> None:
    b = Builder()
    x, start, kept = b.input(FLOAT), b.input(INT.with_shape((2,))), b.variable(FLOAT)
    before = b.add(Unary(UnaryKind.ABS), kept)
    b.update(kept, b.add(DynamicUpdateSlice(), kept, x, start))
    execution = onert.Execution(onert.compile(Package((Subgraphs((b.subgraph([before]),)),)), backends=backends))
    found = []
    for value in (1, 2, 3):
        (result,) = execution.run([np.full((2, 3), value, np.float32), np.int32([1, -1])]).values()
        found.append(result[0, 0])
    assert found == [0, 1, 2]
