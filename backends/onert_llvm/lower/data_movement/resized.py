"""Planes resized to the nearest elements row by row: equal rows are copied."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert_llvm.command.command import Slot
from onert_llvm.kernels.data_movement.repeated_rows import RepeatedRows
from onert_llvm.lower.command_builder import Lowering


def repeated(rows: Array) -> Array:
    """Of each run of equal rows: the row, the number of the first, and how many there are."""
    first = np.flatnonzero(np.diff(rows, prepend=rows[0] - 1))
    return np.stack([rows[first], first, np.diff(first, append=len(rows))], 1).astype(np.int64)


def emit(lowering: Lowering, at: int, rows: Array, columns: Array, unit: int, sizes: tuple[int, int, int, int]) -> None:
    """Emit the resizing of planes from rows and columns within them; `sizes` are the number of planes, the rows and
    columns of each before, and the rows after."""
    planes, height, width, after = sizes
    operation = lowering.operation(at)
    slots: dict[str, Slot] = {
        "rows": lowering.constant(rows),
        "columns": lowering.constant(columns),
        "count": len(rows),
        "width": len(columns),
        "x_row": width * unit,
        "x_plane": height * width * unit,
        "out_plane": after * len(columns) * unit,
    }
    (source, *_), (result,) = operation.used, operation.outputs
    lowering.run(at, RepeatedRows(unit), planes * len(rows), {"x": source}, {"out": result}, slots)
