"""The cost of reading a flatbuffer: data shared by several offsets is charged each time it is read."""

from __future__ import annotations

from collections.abc import Callable

import flatbuffers
import numpy as np
import pytest

from onert.frontend.flatbuffer import LETTERS, Table, root
from onert.ir import ModelError
from onert.ir.process.budget import Budget


def _content() -> memoryview:
    """A table of a vector of 100 numbers, a string of 320 letters, and a vector of 3 tables."""
    b = flatbuffers.Builder(1024)
    numbers, text = b.CreateNumpyVector(np.arange(100, dtype=np.int32)), b.CreateString("a" * 320)
    inner = []
    for _ in range(3):
        b.StartObject(0)
        inner.append(b.EndObject())
    b.StartVector(4, len(inner), 4)
    for each in inner:
        b.PrependUOffsetTRelative(each)
    tables = b.EndVector()
    b.StartObject(3)
    for slot, offset in enumerate((numbers, text, tables)):
        b.PrependUOffsetTRelativeSlot(slot, offset, 0)
    b.Finish(b.EndObject())
    return memoryview(bytes(b.Output()))


READINGS: dict[str, tuple[Callable[[Table], object], int]] = {
    "numbers": (lambda table: table.array(0, "i"), 100),
    "a text": (lambda table: table.text(1), 320 // LETTERS),
    "bytes": (lambda table: table.octets(1), 320 // LETTERS),
    "tables": (lambda table: list(table.tables(2)), 3),
    "nothing": (lambda table: table.array(7, "i"), 0),
}


@pytest.mark.parametrize(("read", "units"), READINGS.values(), ids=READINGS)
def test_data_read_twice_is_charged_twice(read: Callable[[Table], object], units: int) -> None:
    budget = Budget(1 + 2 * units, ModelError)
    table = root(_content(), budget)
    for left in (units, 0):
        read(table)
        assert budget.left == left
    if units:
        with pytest.raises(ModelError, match="reading what its offsets refer to takes more than"):
            read(table)
