"""A decoder's step with its caches in each form that models use, for tests and benchmarks.

A token is multiplied by weights, its key and value are written to caches with room for a number of positions, and
attention reads the last `WINDOW` of them. So a step's time depends on the number of positions only if caches are
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.attention import Attention
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.element_indices import ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicSlice, HloDynamicUpdateSlice
from onert.ir.ops.stablehlo.with_bodies import HloScatter

F32, I32 = DType.FLOAT32, DType.INT32
WINDOW = 16

Put = Callable[[Builder, int, int, int], int]
"""Returns the cache with a row written at a position."""


def put(b: Builder, cache: int, row: int, position: int) -> int:
    zero = b.constant(np.int32([0]))
    return b.add(DynamicUpdateSlice(), cache, row, b.add(Concat(0), zero, position, zero, zero))


def put_hlo(b: Builder, cache: int, row: int, position: int) -> int:
    zero = b.constant(np.int32(0))
    return b.add(HloDynamicUpdateSlice(), cache, row, zero, b.add(Reshape(()), position), zero, zero)


def put_twice(b: Builder, cache: int, row: int, position: int) -> int:
    """Writes a row and then overwrites it, both through another shape."""
    rows = b.add(Reshape(shape_of(b, cache)[1:]), cache)
    flat = b.add(Reshape(shape_of(b, row)[1:]), row)
    zero = b.constant(np.int32([0]))
    start = b.add(Concat(0), position, zero, zero)
    first = b.add(DynamicUpdateSlice(), rows, b.constant(np.full(shape_of(b, flat), 9, np.float32)), start)
    return b.add(Reshape(shape_of(b, cache)), b.add(DynamicUpdateSlice(), first, flat, start))


def put_slices(b: Builder, cache: int, row: int, position: int) -> int:
    """As ONNX's ScatterND does it, twice at the same position."""
    at = b.add(Concat(1), b.constant(np.int32([[0]])), b.add(Reshape((1, 1)), position))
    places, rows = b.add(Concat(0), at, at), b.add(Reshape(shape_of(b, row)[1:]), row)
    other = b.constant(np.full(shape_of(b, rows), 9, np.float32))
    return b.add(ScatterSlices(), cache, places, b.add(Concat(0), other, rows))


def put_elements(b: Builder, cache: int, row: int, position: int) -> int:
    """As ONNX's TensorScatter does it: with an index for each element."""
    shape = b.constant(np.int32(shape_of(b, row)))
    places = b.add(BroadcastTo(), b.add(Reshape((1, 1, 1, 1)), position), shape)
    return b.add(ScatterElements(1), cache, places, row)


def put_by_hlo(b: Builder, cache: int, row: int, position: int) -> int:
    """As StableHLO's scatter does it, in a model whose second subgraph is its body."""
    scatter = HloScatter(1, (0, 2, 3), (1,), (1,), 1, replaces=True)
    return b.add(scatter, cache, b.add(Reshape((1, 1)), position), row)


def shape_of(b: Builder, operand: int) -> tuple[int, ...]:
    return tuple(d or 0 for d in b.type(operand).shape)


def step(b: Builder, caches: tuple[int, int], heads: int, n: int, put: Put) -> tuple[int, tuple[int, int], int]:
    """A step on caches `[1, positions, heads, n]`: its result, the updated caches, and a check that may fail."""
    model, rng = heads * n, np.random.default_rng(0)
    x, position = b.input(TensorType(F32, (1, model)), "x"), b.input(TensorType(I32, (1,)), "position")
    failing = b.input(TensorType(I32, (1,)), "index")

    def times(operand: int) -> int:
        weights = rng.standard_normal((model, model), np.float32) / np.float32(np.sqrt(model))
        return b.add(FullyConnected(), operand, b.constant(weights))

    query, key, value = (b.add(Reshape((1, 1, heads, n)), times(x)) for _ in range(3))
    keys, values = (put(b, cache, row, position) for cache, row in zip(caches, (key, value), strict=True))
    zero, at = b.constant(np.int32(0)), b.add(Reshape(()), position)
    part = HloDynamicSlice((1, WINDOW, heads, n))
    seen = [b.add(Reshape((WINDOW, model)), b.add(part, cache, zero, at, zero, zero)) for cache in (keys, values)]
    scores = b.add(BatchMatMul(adjoint_y=True), b.add(Reshape((1, model)), query), seen[0])
    mixed = b.add(BatchMatMul(), b.add(Softmax(), scores), seen[1])
    return times(mixed), (keys, values), b.add(Gather(0), b.constant(np.float32([1, 2])), failing)


def caches_of(positions: int, heads: int, n: int) -> TensorType:
    return TensorType(F32, (1, positions, heads, n))


def with_resources(positions: int, heads: int = 2, n: int = 4, put: Put = put) -> Package:
    """Caches as resource variables, which a subgraph that is called once fills with ones."""
    b, type_ = Builder(), caches_of(positions, heads, n)
    b.add_many(CallOnce(1))
    handles = [b.add(VarHandle("", name)) for name in ("keys", "values")]
    first, second = (b.add(ReadVariable((type_,)), handle) for handle in handles)
    y, after, checked = step(b, (first, second), heads, n, put)
    for handle, cache in zip(handles, after, strict=True):
        b.add_many(AssignVariable(), handle, cache)
    once = Builder("once")
    for name in ("keys", "values"):
        ones = once.constant(np.ones((1, positions, heads, n), np.float32))
        once.add_many(AssignVariable(), once.add(VarHandle("", name)), ones)
    return Package((Subgraphs((b.subgraph([y, checked]), once.subgraph([]))),), "resources")


def with_variables(positions: int, heads: int = 2, n: int = 4, put: Put = put) -> Package:
    """Caches as variable tensors."""
    b, type_ = Builder(), caches_of(positions, heads, n)
    caches = b.variable(type_, "keys"), b.variable(type_, "values")
    y, after, checked = step(b, caches, heads, n, put)
    for cache, following in zip(caches, after, strict=True):
        b.update(cache, following)
    body = Builder("the second of two")
    _, second = (body.input(TensorType(F32, ())) for _ in range(2))
    return Package((Subgraphs((b.subgraph([y, checked]), body.subgraph([second]))),), "variables")


def with_ends(positions: int, heads: int = 2, n: int = 4, put: Put = put) -> Package:
    """Caches as inputs and outputs."""
    b, type_ = Builder(), caches_of(positions, heads, n)
    caches = b.input(type_, "keys_in"), b.input(type_, "values_in")
    y, after, checked = step(b, caches, heads, n, put)
    return Package((Subgraphs((b.subgraph([y, checked, *after]),)),), "ends")


def with_attention(positions: int, tokens: int = 1, heads: int = 2, n: int = 4) -> Package:
    """Circle's attention layer, whose caches are variable tensors."""
    b, type_, rng = Builder(), caches_of(positions, heads, n), np.random.default_rng(0)
    model = heads * n
    x, position = b.input(TensorType(F32, (1, tokens, model)), "x"), b.input(TensorType(I32, (1,)), "position")
    weights = [b.constant(rng.standard_normal((model, model), np.float32) / np.float32(model)) for _ in range(4)]
    angles = rng.uniform(-3, 3, (tokens, n // 2)).repeat(2, -1).astype(np.float32)
    caches = b.variable(type_, "keys"), b.variable(type_, "values")
    tables = (b.constant(np.cos(angles)), b.constant(np.sin(angles)))
    y, *after = b.add_many(Attention(), x, *weights, *tables, None, *caches, position)
    for cache, following in zip(caches, after, strict=True):
        b.update(cache, following)
    return Package((Subgraphs((b.subgraph([y]),)),), "attention")


def inputs(number: int, heads: int = 2, n: int = 4, index: int = 0) -> dict[str, Array]:
    """The inputs of step `number`; an index above 1 makes it fail."""
    x = np.random.default_rng(number).standard_normal((1, heads * n), np.float32)
    return {"x": x, "position": np.int32([3 * number]), "index": np.int32([index])}


def expected(steps: int, positions: int, first: float, heads: int = 2, n: int = 4) -> list[Array]:
    """The results of steps 0, 1, ... on caches full of `first`, in NumPy."""
    rng, model = np.random.default_rng(0), heads * n
    wq, wk, wv, wo = (rng.standard_normal((model, model), np.float32) / np.float32(np.sqrt(model)) for _ in range(4))
    keys, values = (np.full((positions, model), first, np.float32) for _ in range(2))
    found = []
    for number in range(steps):
        x = inputs(number, heads, n)["x"]
        at = min(3 * number, positions - 1)
        keys[at], values[at] = x @ wk.T, x @ wv.T
        start = min(3 * number, positions - WINDOW)
        scores = (x @ wq.T) @ keys[start : start + WINDOW].T
        weights = np.exp(scores - scores.max())
        found.append((weights / weights.sum()) @ values[start : start + WINDOW] @ wo.T)
    return found


def copied_bytes(program: Any, tensors: Any) -> Mapping[str, int]:
    """The bytes copied by the native commands of a program's entry, by kernel kind."""
    # Only measurements of native code need the backend's own modules.
    from onert_llvm.command.command import Area, is_idle

    def place(pointer: Any) -> object:
        if pointer.area is not Area.OPERAND:
            return pointer
        return tensors[pointer.index].array.__array_interface__["data"][0] + pointer.offset

    found: dict[str, int] = {}
    for routine_step in program.main.steps:
        for command in routine_step.kernel.lowered.commands:
            slots, name = command.slots, command.spec.name
            if is_idle(command, place):
                continue
            if name in ("copy_rows", "put_part", "take_part"):
                found[name] = found.get(name, 0) + command.tiles * slots["width"]
            elif name.startswith("move"):
                nbytes = max(access.nbytes for access in command.accesses if access.write)
                found[name] = found.get(name, 0) + nbytes
    return found
