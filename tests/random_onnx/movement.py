"""Steps of random ONNX graphs that move elements or change shapes; each is added only if the drawn tensor fits it."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .draft import Draft, Drawn


def _transposed(d: Draft, x: Drawn) -> None:
    order = d.rng.permutation(x.rank).tolist()
    d.result(d.add("Transpose", x.name, perm=order), [x.dims[a] for a in order])


def _merged(d: Draft, x: Drawn) -> None:
    """Two neighbouring axes as one."""
    if x.rank < 2:
        return
    at = int(d.rng.integers(x.rank - 1))
    merged = tuple(a * b for a, b in zip(x.dims[at], x.dims[at + 1], strict=True))
    dims = [*x.dims[:at], merged, *x.dims[at + 2 :]]
    if d.chance(0.4):
        parts = [*d.shape_of(x, range(at)), d.integers(-1), *d.shape_of(x, range(at + 2, x.rank))]
    else:
        product = d.add("Mul", d.size(x, at), d.size(x, at + 1))
        parts = [*d.shape_of(x, range(at)), product, *d.shape_of(x, range(at + 2, x.rank))]
    d.result(d.add("Reshape", x.name, d.add("Concat", *parts, axis=0)), dims)


def _split_axis(d: Draft, x: Drawn) -> None:
    """A fixed axis as two, such as heads and their units."""
    at = d.axis(x)
    sizes = [n for n in (2, 3, 4) if x.is_fixed(at) and x.dims[at][0] % n == 0 and x.dims[at][0] > n]
    if not sizes:
        return
    outer = d.one_of(sizes)
    inner = x.dims[at][0] // outer
    dims = [*x.dims[:at], d.same(outer), d.same(inner), *x.dims[at + 1 :]]
    parts = [*d.shape_of(x, range(at)), d.integers(outer, inner), *d.shape_of(x, range(at + 1, x.rank))]
    y = d.add("Reshape", x.name, d.add("Concat", *parts, axis=0))
    d.result(y, dims)
    if d.chance(0.5):
        order = d.rng.permutation(len(dims)).tolist()
        d.result(d.add("Transpose", y, perm=order), [dims[a] for a in order])


def _concatenated(d: Draft, x: Drawn) -> None:
    axis = d.axis(x)
    parts, total = [x.name], list(x.dims[axis])
    for y in (d.any() for _ in range(6)):
        fits = y.rank == x.rank and all(y.dims[a] == x.dims[a] for a in range(x.rank) if a != axis)
        if fits and len(parts) < 3:
            parts.append(y.name)
            total = [m + n for m, n in zip(total, y.dims[axis], strict=True)]
    d.result(d.add("Concat", *parts, axis=axis), [*x.dims[:axis], total, *x.dims[axis + 1 :]])


def _sliced(d: Draft, x: Drawn) -> None:
    axis, step = d.axis(x), d.one_of([1, 1, 1, 2, 3, -1])
    sizes = x.dims[axis]
    if step < 0:
        start, end = d.integers(-1), d.integers(-(1 << 40))
        found = list(sizes)
    elif d.chance(0.5):
        first, last = int(d.rng.integers(0, 3)), d.one_of([-1, -2, 1 << 40, 1 << 40, 7])
        start, end = d.integers(first), d.integers(last)
        found = [len(range(*slice(first, last, step).indices(n))) for n in sizes]
    else:
        half = d.add("Div", d.size(x, axis), d.integers(2))
        start, end = (d.integers(0), half) if d.chance(0.5) else (half, d.integers(1 << 40))
        found = [len(range(0, n // 2, step)) if end == half else len(range(n // 2, n, step)) for n in sizes]
    if min(found) >= 1:
        y = d.add("Slice", x.name, start, end, d.integers(axis), d.integers(step))
        d.result(y, [*x.dims[:axis], found, *x.dims[axis + 1 :]])


def _padded(d: Draft, x: Drawn) -> None:
    axis, before, after = d.axis(x), int(d.rng.integers(0, 3)), int(d.rng.integers(0, 3))
    mode = d.one_of(["constant", "edge", "reflect"])
    if mode == "reflect" and x.least(axis) <= max(before, after):
        return
    pads = [0] * (2 * x.rank)
    pads[axis], pads[x.rank + axis] = before, after
    wide = [n + before + after for n in x.dims[axis]]
    d.result(d.add("Pad", x.name, d.integers(*pads), mode=mode), [*x.dims[:axis], wide, *x.dims[axis + 1 :]])


def _gathered(d: Draft, x: Drawn) -> None:
    axis = d.axis(x)
    least = x.least(axis)
    if d.chance(0.3):
        y = d.add("Gather", x.name, d.constant(np.int64(d.one_of([0, -1]))), axis=axis)
        if x.rank > 1:
            d.result(y, [*x.dims[:axis], *x.dims[axis + 1 :]])
        return
    indices = d.rng.integers(-least, least, int(d.rng.integers(1, 5)))
    dims = [*x.dims[:axis], d.same(len(indices)), *x.dims[axis + 1 :]]
    d.result(d.add("Gather", x.name, d.integers(*indices.tolist()), axis=axis), dims)


def _positions(d: Draft, x: Drawn) -> None:
    """Numbers of positions along an axis, alone or added to the tensor."""
    axis = d.axis(x)
    count = d.add("Squeeze", d.size(x, axis))
    numbers = d.add("Range", d.constant(np.int64(0)), count, d.constant(np.int64(1)))
    values = d.add("Sin", d.add("Cast", numbers, to=TensorProto.FLOAT))
    if d.chance(0.4):
        table = d.constant(d.rng.normal(size=(max(x.dims[axis]) + 2, 4)).astype(np.float32))
        d.result(d.add("Gather", table, numbers, axis=0), [x.dims[axis], d.same(4)])
        return
    if x.rank - 1 - axis:
        values = d.add("Unsqueeze", values, d.integers(*range(1, x.rank - axis)))
    d.result(d.add("Add", x.name, values), x.dims)


def _expanded(d: Draft, x: Drawn) -> None:
    """A reduced tensor expanded to the shape of the original."""
    mean = d.add("ReduceMean", x.name, d.integers(d.axis(x)), keepdims=1)
    d.result(d.add("Expand", mean, d.sizes(x)), x.dims)


def _tiled(d: Draft, x: Drawn) -> None:
    axis, times = d.axis(x), [1] * x.rank
    times[axis] = 2
    tiled = [2 * n for n in x.dims[axis]]
    d.result(d.add("Tile", x.name, d.integers(*times)), [*x.dims[:axis], tiled, *x.dims[axis + 1 :]])


def _unsqueezed(d: Draft, x: Drawn) -> None:
    ones = [a for a in range(x.rank) if set(x.dims[a]) == {1}]
    if ones and d.chance(0.5) and x.rank > 1:
        at = d.one_of(ones)
        d.result(d.add("Squeeze", x.name, d.integers(at)), [*x.dims[:at], *x.dims[at + 1 :]])
    else:
        at = int(d.rng.integers(x.rank + 1))
        d.result(d.add("Unsqueeze", x.name, d.integers(at)), [*x.dims[:at], d.same(1), *x.dims[at:]])


def _windows(d: Draft, x: Drawn) -> None:
    """An open axis padded to a multiple of four and cut into windows."""
    axis = d.axis(x)
    size = d.size(x, axis)
    four = d.integers(4)
    missing = d.add("Mod", d.add("Sub", four, d.add("Mod", size, four)), four)
    zeros = d.integers(*[0] * x.rank)
    after = [d.integers(*[0] * n) for n in (axis, x.rank - 1 - axis) if n]
    order = [*after[:1], missing, *after[1:]] if axis else [missing, *after]
    padded = d.add("Pad", x.name, d.add("Concat", zeros, *order, axis=0))
    parts = [*d.shape_of(x, range(axis)), d.integers(-1, 4), *d.shape_of(x, range(axis + 1, x.rank))]
    count = [-(-n // 4) for n in x.dims[axis]]
    dims = [*x.dims[:axis], count, d.same(4), *x.dims[axis + 1 :]]
    d.result(d.add("Reshape", padded, d.add("Concat", *parts, axis=0)), dims)


def _flattened(d: Draft, x: Drawn) -> None:
    axis = int(d.rng.integers(x.rank + 1))
    sizes = np.array(x.dims, np.int64).reshape(x.rank, d.samples)
    d.result(d.add("Flatten", x.name, axis=axis), [sizes[:axis].prod(axis=0), sizes[axis:].prod(axis=0)])


def _resized(d: Draft, x: Drawn) -> None:
    if x.rank not in (3, 4):
        return
    axes = x.rank - 2
    mode = d.one_of(["nearest", "linear"])
    how = {"mode": mode, "coordinate_transformation_mode": d.one_of(["asymmetric", "half_pixel", "align_corners"])}
    if mode == "nearest":
        how["nearest_mode"] = "floor"
    if d.chance(0.5):
        scales = d.constant(np.array([1, 1, *[2] * axes], np.float32))
        spaces = [[2 * n for n in x.dims[2 + a]] for a in range(axes)]
        d.result(d.add("Resize", x.name, "", scales, **how), [*x.dims[:2], *spaces])
    else:
        sizes = [d.add("Add", d.size(x, 2 + a), d.integers(3)) for a in range(axes)]
        wanted = d.add("Concat", d.size(x, 0), d.size(x, 1), *sizes, axis=0)
        spaces = [[n + 3 for n in x.dims[2 + a]] for a in range(axes)]
        d.result(d.add("Resize", x.name, "", "", wanted, **how), [*x.dims[:2], *spaces])


STEPS = (
    _transposed,
    _merged,
    _split_axis,
    _concatenated,
    _concatenated,
    _sliced,
    _padded,
    _resized,
    _gathered,
    _positions,
    _expanded,
    _tiled,
    _unsqueezed,
    _windows,
    _flattened,
)
"""Steps named twice are drawn twice as often."""
