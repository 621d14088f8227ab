"""Distinct values among a computed number of entries are found natively, in order, with positions and counts."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import FirstEntries, Unique, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.unique import UniqueSlices

from .counted_rows import evaluated


@pytest.mark.parametrize("kind", [Unique(), UniqueSlices(None, True), UniqueSlices(0, False)], ids=str)
def test_distinct_values_of_a_computed_number_of_entries_are_found_natively(kind: Unique | UniqueSlices) -> None:
    b = Builder()
    mask, x = b.input(TensorType(DType.BOOL, (6,)), "mask"), b.input(TensorType(DType.INT32, (6,)), "x")
    chosen = b.add(Gather(0), x, b.add(Reshape(), b.add(Where(), mask), b.constant(np.int32([-1]))))
    package = Package((b.model(list(b.add_many(kind, chosen))),), "different")
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    for given in ([7, -3, 7, 0, -3, 7], [1, 2, 3, 4, 5, 6], [-(1 << 31), 5, 5, -(1 << 31), 0, 0]):
        for chosen_ones in ([0, 1, 0, 1, 1, 0], [0] * 6, [1] * 6, [0, 0, 1, 0, 0, 0]):
            inputs = [np.bool_(chosen_ones), np.int32(given)]
            theirs = expected.run(inputs).values()
            for one, other in zip(execution.run(inputs).values(), theirs, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
