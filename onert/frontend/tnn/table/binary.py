"""Binary functions of two blobs, or of a blob and a weight, with broadcasting.

Source: TNN's multidir_broadcast_layer.cc and add_layer_interpreter.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.ir import ModelError
from onert.ir.ops.elementwise.binary import BinaryKind


def operands(site: Site) -> tuple[int, ...]:
    """The operands of a layer: a blob and a weight, which may come first or second, or two or more blobs."""
    position = site.integer("position of the weight", 1, -1, 1)
    x, *others = site.x, *site.inputs[1:]
    if others:
        return x, *others
    weight = _weight(site)
    return (weight, x) if position == 0 else (x, weight)


def pair(site: Site) -> tuple[int, int]:
    """Like `operands`, for a layer with exactly two."""
    found = operands(site)
    if len(found) != 2:
        raise ModelError(f"it has {len(found)} inputs, expected 1 or 2")
    return found[0], found[1]


def _binary(kind: BinaryKind, site: Site) -> Sequence[int]:
    x, *others = operands(site)
    for y in others:
        x = site.graph.binary(kind, x, y)
    return [x]


def _weight(site: Site) -> int:
    """A weight with its own shape if it has the blob's rank; otherwise its shape is inferred from its element count."""
    g = site.graph
    shape = site.shape
    made_up = (1, shape[1] if len(shape) > 1 else 1, *(1,) * (len(shape) - 2))
    found = g.weights.buffer(site.layer, WeightRequest("weight", made_up))
    if found is None:
        raise ModelError("it has a single input and no weight")
    if found.shape is not None and len(found.shape) >= len(shape):
        return g.constant(found.real().reshape(found.shape))
    for axes in _broadcasts(len(shape)):
        kept = tuple(d if axis in axes else 1 for axis, d in enumerate(shape))
        if math.prod(kept) == found.count:
            return g.constant(found.real().reshape(kept))
    raise ModelError(f"its weight of {found.count} elements does not broadcast against {list(shape)}")


def _broadcasts(rank: int) -> tuple[tuple[int, ...], ...]:
    """The axes that a weight may extend along, in the order in which TNN tries them."""
    inner = tuple(range(1, rank))
    tried = ((), (1,), inner, (3,), (2, 3), (1, 3), (1, 2))
    return tuple(axes for axes in tried if all(axis < rank for axis in axes))


LAYERS = {
    "Add": partial(_binary, BinaryKind.ADD),
    "Sub": partial(_binary, BinaryKind.SUB),
    "Mul": partial(_binary, BinaryKind.MUL),
    "Div": partial(_binary, BinaryKind.DIV),
    "Maximum": partial(_binary, BinaryKind.MAXIMUM),
    "Minimum": partial(_binary, BinaryKind.MINIMUM),
    "SquaredDifference": partial(_binary, BinaryKind.SQUARED_DIFFERENCE),
}
