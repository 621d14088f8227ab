"""The division of products into work tiles, and the slots that describe it."""

from __future__ import annotations

from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.register_tile import Tile
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.schedule.cost_model import Shape, Work
from onert_llvm.schedule.float_packing import panels
from onert_llvm.target.isa import Isa


def partition(
    lowering: Lowering,
    shape: Shape,
    tile: Tile,
    row_bytes: int,
    b: Slot,
    panel_bytes: int,
    batches: int = 1,
    isa: Isa | None = None,
) -> tuple[Work, dict[str, Slot]]:
    """The work tiles and slots of a product that reads `row_bytes` per row, with its right-hand matrix at `b` and a
    dense result. With `batches`, each is such a product; `isa` overrides the tile's target.
    """
    across = panels(shape.n, tile.columns, isa or lowering.isa)
    work = lowering.row_work(shape, tile, across, row_bytes, batches)
    sizes = {"m": shape.m, "n": shape.n, "mc": work.mc, "panels": across, "panel_bytes": panel_bytes, "ldc": shape.n}
    return work, {"b": b, **sizes}
