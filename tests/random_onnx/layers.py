"""Layers of random ONNX graphs that compute new elements; each is added only if the drawn tensor fits it."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from .draft import CHANNELS, Dims, Draft, Drawn


def _unary(d: Draft, x: Drawn) -> None:
    kind = d.one_of(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Gelu", "Softplus", "HardSwish", "Sin", "Erf"])
    d.result(d.add(kind, x.name), x.dims)


def _scaled(d: Draft, x: Drawn) -> None:
    """An operation with a constant per element of the last axis, or with one number."""
    wide = x.is_fixed(x.rank - 1) and d.chance(0.7)
    other = d.floats(x.dims[-1][0]) if wide else d.constant(np.float32(d.rng.normal()))
    d.result(d.add(d.one_of(["Add", "Mul", "Sub", "Max"]), x.name, other), x.dims)


def _pair(d: Draft, x: Drawn) -> None:
    """An operation on two tensors of the same or of broadcast shapes."""
    for _ in range(8):
        y = d.any()
        wide = _broadcast(d, x.dims, y.dims)
        if wide is not None:
            d.result(d.add(d.one_of(["Add", "Mul", "Sub", "Max", "Min"]), x.name, y.name), wide)
            return


def _broadcast(d: Draft, x: Dims, y: Dims) -> list[tuple[int, ...]] | None:
    rank, one = max(len(x), len(y)), d.same(1)
    pairs = zip((one,) * (rank - len(x)) + x, (one,) * (rank - len(y)) + y, strict=True)
    found = []
    for a, b in pairs:
        if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
            return None
        found.append(tuple(n if m == 1 else m for m, n in zip(a, b, strict=True)))
    return found


def _divided_by_size(d: Draft, x: Drawn) -> None:
    """A product or quotient with a number computed from a length."""
    size = d.add("Cast", d.size(x, d.axis(x)), to=TensorProto.FLOAT)
    if d.chance(0.5):
        size = d.add("Sqrt", size)
    d.result(d.add(d.one_of(["Div", "Mul"]), x.name, size), x.dims)
    if d.chance(0.5):
        bounded = d.add("Tanh", d.nodes[-1].output[0])
        d.result(bounded, x.dims)


def _product(d: Draft, x: Drawn) -> None:
    if x.rank >= 2 and x.is_fixed(x.rank - 1):
        columns = d.one_of(CHANNELS)
        y = d.add("MatMul", x.name, d.weights(x.dims[-1][0], columns, terms=x.dims[-1][0]))
        if d.chance(0.6):
            y = d.add("Add", y, d.floats(columns))
        d.result(y, [*x.dims[:-1], d.same(columns)])


def _attention(d: Draft, x: Drawn) -> None:
    """Products of a tensor's rows with each other, and their softmax."""
    if x.rank < 2:
        return
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    scores = d.add("MatMul", x.name, d.add("Transpose", x.name, perm=order))
    dims = [*x.dims[:-2], x.dims[-2], x.dims[-2]]
    if d.chance(0.3):
        scores = d.add("Trilu", scores, upper=0)
    weights = d.add("Softmax", d.add("Mul", scores, d.constant(np.float32(0.3))), axis=-1)
    d.result(weights, dims)
    if d.chance(0.8):
        d.result(d.add("MatMul", weights, x.name), x.dims)


def _softmax(d: Draft, x: Drawn) -> None:
    d.result(d.add("Softmax", x.name, axis=d.axis(x)), x.dims)


def _layer_norm(d: Draft, x: Drawn) -> None:
    if x.is_fixed(x.rank - 1):
        units = x.dims[-1][0]
        d.result(d.add("LayerNormalization", x.name, d.floats(units), d.floats(units), axis=-1), x.dims)


def _instance_norm(d: Draft, x: Drawn) -> None:
    if x.rank >= 3 and x.is_fixed(1):
        units = x.dims[1][0]
        d.result(d.add("InstanceNormalization", x.name, d.floats(units), d.floats(units)), x.dims)


def _reduced(d: Draft, x: Drawn) -> None:
    axes = sorted(d.rng.permutation(x.rank)[: int(d.rng.integers(1, x.rank + 1))].tolist())
    kind = d.one_of(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceMin", "ReduceLogSumExp"])
    keep = d.chance(0.6) or len(axes) == x.rank
    y = d.add(kind, x.name, d.integers(*axes), keepdims=int(keep))
    dims = [d.same(1) if a in axes else x.dims[a] for a in range(x.rank) if keep or a not in axes]
    d.result(y, dims)


def _convolution(d: Draft, x: Drawn) -> None:
    """A convolution of one or two axes over a tensor whose channels are its second axis."""
    if x.rank not in (3, 4) or not x.is_fixed(1):
        return
    axes = x.rank - 2
    channels = x.dims[1][0]
    window = [int(d.one_of([1, 3, 3, 5])) for _ in range(axes)]
    strides = [int(d.one_of([1, 1, 2])) for _ in range(axes)]
    dilations = [int(d.one_of([1, 1, 2])) for _ in range(axes)]
    begin, end = ([int(d.rng.integers(0, k // 2 + 2)) for k in window] for _ in range(2))
    spaces = []
    for a in range(axes):
        reach = dilations[a] * (window[a] - 1) + 1
        spaces.append([(n + begin[a] + end[a] - reach) // strides[a] + 1 for n in x.dims[2 + a]])
        if x.least(2 + a) + begin[a] + end[a] < reach:
            return
    groups = d.one_of([1, 1, 1, channels])
    filters = channels if groups > 1 else d.one_of(CHANNELS)
    each = channels // groups
    weights = d.weights(filters, each, *window, terms=each * math.prod(window))
    y = d.add(
        "Conv",
        x.name,
        weights,
        d.floats(filters),
        pads=[*begin, *end],
        strides=strides,
        dilations=dilations,
        group=groups,
    )
    if d.chance(0.5):
        y = d.add(d.one_of(["Relu", "Sigmoid", "HardSwish"]), y)
    d.result(y, [x.dims[0], d.same(filters), *spaces])


def _transposed_convolution(d: Draft, x: Drawn) -> None:
    if x.rank not in (3, 4) or not x.is_fixed(1):
        return
    axes, channels, filters = x.rank - 2, x.dims[1][0], d.one_of(CHANNELS)
    weights = d.weights(channels, filters, *[3] * axes, terms=3**axes * channels)
    y = d.add("ConvTranspose", x.name, weights, strides=[2] * axes, pads=[1] * axes + [0] * axes)
    d.result(y, [x.dims[0], d.same(filters), *[[2 * n for n in x.dims[2 + a]] for a in range(axes)]])


def _pooled(d: Draft, x: Drawn) -> None:
    if x.rank not in (3, 4):
        return
    axes, stride, up = x.rank - 2, d.one_of([1, 2]), d.chance(0.3)
    window, pad = 3, int(d.rng.integers(0, 2))
    if any(x.least(2 + a) + 2 * pad < window for a in range(axes)):
        return
    spaces = []
    for a in range(axes):
        whole = [n + 2 * pad - window for n in x.dims[2 + a]]
        found = [-(-w // stride) + 1 if up else w // stride + 1 for w in whole]
        # No window may start in the margin after the picture.
        spaces.append([f - (up and (f - 1) * stride >= n + pad) for f, n in zip(found, x.dims[2 + a], strict=True)])
    shared = {"kernel_shape": [window] * axes, "strides": [stride] * axes, "pads": [pad] * 2 * axes}
    if d.chance(0.5):
        y = d.add("MaxPool", x.name, ceil_mode=int(up), **shared)
    elif up:
        return
    else:
        y = d.add("AveragePool", x.name, count_include_pad=int(d.chance(0.5)), **shared)
    d.result(y, [*x.dims[:2], *spaces])


def _masked(d: Draft, x: Drawn) -> None:
    """Elements chosen by a comparison."""
    condition = d.add("Greater", x.name, d.constant(np.float32(0.1)))
    other = d.add("Mul", x.name, d.constant(np.float32(0.01)))
    d.result(d.add("Where", condition, x.name, other), x.dims)


def _cumulative(d: Draft, x: Drawn) -> None:
    axis = d.axis(x)
    y = d.add("CumSum", x.name, d.constant(np.int64(axis)), reverse=int(d.chance(0.3)), exclusive=int(d.chance(0.3)))
    d.result(d.add("Tanh", y), x.dims)


def _largest(d: Draft, x: Drawn) -> None:
    axis = d.axis(x)
    k = int(d.rng.integers(1, min(4, x.least(axis)) + 1))
    values, _ = d.add("TopK", x.name, d.integers(k), axis=axis, outputs=2)
    d.result(values, [*x.dims[:axis], d.same(k), *x.dims[axis + 1 :]])


def _recurrent(d: Draft, x: Drawn) -> None:
    """A recurrent layer over the second axis."""
    if x.rank != 3 or not x.is_fixed(2):
        return
    units, features, kind = d.one_of([4, 8]), x.dims[2][0], d.one_of(["LSTM", "GRU"])
    gates = {"LSTM": 4, "GRU": 3}[kind]
    w, r = (d.floats(1, gates * units, n) for n in (features, units))
    b = d.floats(1, 2 * gates * units)
    steps = d.add("Transpose", x.name, perm=[1, 0, 2])
    how = {"linear_before_reset": 1} if kind == "GRU" else {}
    y, *_ = d.add(kind, steps, w, r, b, hidden_size=units, outputs=2, **how)
    found = d.add("Squeeze", y, d.integers(1))
    d.result(d.add("Transpose", found, perm=[1, 0, 2]), [*x.dims[:2], d.same(units)])


def _parts(d: Draft, x: Drawn) -> None:
    """The halves of a fixed axis; the product of one with the other's sigmoid."""
    axes = [a for a in range(x.rank) if x.is_fixed(a) and x.dims[a][0] % 2 == 0]
    if axes:
        axis = d.one_of(axes)
        half = x.dims[axis][0] // 2
        first, second = d.add("Split", x.name, d.integers(half, half), axis=axis, outputs=2)
        d.result(d.add("Mul", first, d.add("Sigmoid", second)), [*x.dims[:axis], d.same(half), *x.dims[axis + 1 :]])


def _einsum(d: Draft, x: Drawn) -> None:
    if x.rank == 3:
        scores = d.add("Einsum", x.name, x.name, equation="btc,bsc->bts")
        d.result(d.add("Tanh", scores), [x.dims[0], x.dims[1], x.dims[1]])
    elif x.rank == 4:
        y = d.add("Einsum", x.name, x.name, equation="bhtc,bhsc->bts")
        d.result(d.add("Tanh", y), [x.dims[0], x.dims[2], x.dims[2]])


def _global_pool(d: Draft, x: Drawn) -> None:
    if x.rank in (3, 4):
        kind = d.one_of(["GlobalAveragePool", "GlobalMaxPool"])
        d.result(d.add(kind, x.name), [*x.dims[:2], *[d.same(1)] * (x.rank - 2)])


def _squeeze_and_excite(d: Draft, x: Drawn) -> None:
    if x.rank == 4 and x.is_fixed(1):
        channels = x.dims[1][0]
        mean = d.add("GlobalAveragePool", x.name)
        narrow = d.add("Relu", d.add("Conv", mean, d.weights(4, channels, 1, 1, terms=channels)))
        gate = d.add("Sigmoid", d.add("Conv", narrow, d.weights(channels, 4, 1, 1, terms=4)))
        d.result(d.add("Mul", x.name, gate), x.dims)


STEPS = (
    _unary,
    _scaled,
    _pair,
    _pair,
    _divided_by_size,
    _product,
    _product,
    _attention,
    _softmax,
    _layer_norm,
    _instance_norm,
    _reduced,
    _convolution,
    _convolution,
    _convolution,
    _transposed_convolution,
    _pooled,
    _masked,
    _cumulative,
    _largest,
    _recurrent,
    _parts,
    _einsum,
    _global_pool,
    _squeeze_and_excite,
)
"""Steps named twice are drawn twice as often."""
