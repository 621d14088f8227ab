"""Branches and loops: nested graphs become subgraphs, or are inlined if what runs is known at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import numpy as np
from attrs import evolve

from onert.frontend.onnx.branching import BranchBuilder, add_if, share_captures, tensors
from onert.frontend.onnx.building import cast, dimension, ints, require_rank, reshape, transpose
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.messages import Graph, ValueDeclaration, ValueType
from onert.frontend.onnx.node import (
    EnclosingGraph,
    Fork,
    Importer,
    Node,
    Results,
    RuntimeValue,
    Sequence_,
    Splice,
    Value,
)
from onert.frontend.onnx.runtime_values import (
    EMPTY,
    entry_at,
    entry_rank,
    operand_of,
    type_of,
    value_of,
    with_entry,
    with_rank,
    without_shape,
)
from onert.ir import DType, ModelError, RuleError, TensorType
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceOf
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Pack
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.shape import normalize_axis

from .loop_state import ScanOutput, first_values, unread_state, widened_state
from .trip_counts import LoopBody

_UNROLLED = 32
"""The maximum number of iterations of a loop that is unrolled."""
_WIDENED = 4
"""How often the shapes of a loop's state may be widened to more unknown dimensions."""


def _if(node: Node) -> Results:
    """An If: one graph inlined if the condition is constant, otherwise two subgraphs."""
    d, condition = node.draft, node.input(0)
    branches = node.graph("then_branch"), node.graph("else_branch")
    for graph in branches:
        if len(graph.outputs) != len(node.outputs):
            raise ModelError(f"graph '{graph.name}' has {len(graph.outputs)} outputs, expected {len(node.outputs)}")
    known = d.value(condition)
    if known is not None:
        if known.size != 1:
            raise ModelError(f"the condition has {known.size} elements, expected 1")
        chosen = branches[0] if known.reshape(-1)[0] else branches[1]
        return Splice(chosen) if _may_fork(chosen) else node.enclosing.inline(chosen, ())
    made = node.enclosing.subgraph_count()
    results = add_if(d, node.enclosing, condition, [_branch(graph) for graph in branches])
    operands = [operand_of(d, value) for value in results]
    if all(d.type(i).ranked for i in operands):
        return results
    d.remove_last(operands)
    node.enclosing.truncate_subgraphs(made)
    return Fork(condition, branches)


def _may_fork(graph: Graph) -> bool:
    """Whether a node of the graph may produce a tensor whose rank is known only at run time."""
    return any(n.op_type == "If" or (n.op_type == "Squeeze" and len(n.inputs) == 1) for n in graph.nodes)


def _branch(graph: Graph) -> BranchBuilder:
    return lambda scope: scope.inline(graph, ())


Body = Callable[[Draft, EnclosingGraph, int, int, list[int]], tuple[int, list[int], list[int]]]
"""Builds one iteration, given a subgraph and its scope, the iteration number, the condition and the state. Returns the
next condition and state, and the entries added to each list."""


def add_loop(
    node: Node, trips: int | None, start: int, initial: list[int], each: Body, unread: Set[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Add a While over (iteration, condition, state, lists, captured operands); returns the final state and lists.

    `unread` are the positions in the state whose first value no iteration reads.
    """
    d = node.draft
    types = [d.type(i).with_data(None) for i in initial]
    for widened in range(_WIDENED):
        made = node.enclosing.subgraph_count()
        inner, scope = node.enclosing.nested("body")
        at, go = inner.input(TensorType(DType.INT64, ())), inner.input(TensorType(DType.BOOL, ()))
        state = [inner.input(t) for t in types]
        following, found, items = each(inner, scope, at, go, state)
        after = [inner.type(i).with_data(None) for i in found]
        for old, new in zip(types, after, strict=True):
            if old.dtype is not new.dtype:
                raise ModelError(f"the state is {old}, the next one {new}, expected one element type")
        wider = widened_state(types, after, frozenset() if widened else unread)
        if wider == types:
            break
        types = wider
        node.enclosing.truncate_subgraphs(made)
    else:
        raise ModelError("the shapes of its state vary in more dimensions with every iteration")
    lists = [ScanOutput(inner, item) for item in items]
    extra = [inner.input(entry.type) for entry in lists]
    grown = [entry.append(inner, x) for entry, x in zip(lists, extra, strict=True)]
    count = inner.add(Binary(BinaryKind.ADD), at, inner.constant(1, DType.INT64))
    more = reshape(inner, following, ())
    asks = Draft("condition", d.steps, d.memory)
    asks.place = d.place
    own = [asks.input(t) for t in (TensorType(DType.INT64, ()), TensorType(DType.BOOL, ()), *types)]
    for entry in lists:
        asks.input(entry.type)
    if trips is not None:
        below = asks.add(Comparison(ComparisonKind.LESS), own[0], capture(d, asks, trips))
        goes, known = reshape(asks, below, ()), d.value(start)
        if following != go or known is None or not bool(known):
            goes = asks.add(Binary(BinaryKind.LOGICAL_AND), goes, own[1])
    else:
        goes = own[1]
    first = 2 + len(types) + len(lists)
    captured = share_captures(d, (inner, asks), ([at, go, *state, *extra], asks.inputs[:first]))
    passed = [inner.captured[outer] for outer in captured]
    initial = first_values(d, initial, types, unread)
    begin = [d.constant(0, DType.INT64), start, *initial, *(entry.empty(d) for entry in lists), *captured]
    results = [d.type(i).with_data(None) for i in begin]
    results[2 : 2 + len(types)] = types
    results[2 + len(types) : first] = [entry.type for entry in lists]
    body = node.enclosing.finish(inner, [count, more, *found, *grown, *passed])
    condition = node.enclosing.finish(asks, [goes])
    out = d.emit(While(condition, body, tuple(results)), begin, results)
    whole = [entry.stacked(d, items) for entry, items in zip(lists, out[2 + len(types) : first], strict=True)]
    return list(out[2 : 2 + len(types)]), whole


def _loop(node: Node) -> tuple[Value | None, ...]:
    d, body = node.draft, node.graph("body")
    values = [node.any(i) for i in range(2, len(node.inputs))]
    count = len(values)
    if len(body.inputs) != 2 + count or len(body.outputs) < 1 + count:
        raise ModelError(f"the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs for {count} values")
    trips = reshape(d, cast(d, node.input(0), DType.INT64), ()) if node.has(0) else None
    start = reshape(d, node.input(1), ()) if node.has(1) else d.constant(np.array(True), DType.BOOL)
    unrolled = _unrolled(node, body, trips, start, values)
    if unrolled is not None:
        return unrolled
    state = [operand_of(d, value) for value in values]
    kinds = [_state_type(d, value, body.inputs[2 + at]) for at, value in enumerate(values)]
    if trips is None and not node.has(1):
        raise ModelError("the loop has neither a trip count nor a condition, and never ends")

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        given = (value_of(operand, kind) for operand, kind in zip(now, kinds, strict=True))
        values = scope.inline(body, (at, go, *given))
        after[:] = [type_of(inner, value) for value in values[1 : 1 + count]]
        filled[:] = [a.kind != k.kind == "optional" for a, k in zip(after, kinds, strict=True)]
        found = [operand_of(inner, value) for value in values]
        following = [
            inner.add(SequenceOf(), operand) if full else operand
            for operand, full in zip(found[1 : 1 + count], filled, strict=True)
        ]
        return found[0], following, found[1 + count :]

    filled: list[bool] = []  # whether an iteration returns the content of an optional
    after: list[ValueType] = []  # the types of the state after an iteration
    lists = [at for at, kind in enumerate(kinds) if kind.kind == "sequence"]
    ranked = _set_ranks(node, values, state, each, kinds, after) if lists else False
    unread = unread_state(d, body, count, trips, start)
    counted = _trip_count(node, trips, start, state, each)
    if counted is not None:
        trips, start = counted, d.constant(np.array(True), DType.BOOL)
    run = each if counted is None else _without_condition(each)
    last, stacked = add_loop(node, trips, start, state, run, unread)
    if ranked and any(entry_rank(after[at]) != entry_rank(kinds[at]) for at in lists):
        raise ModelError("the tensors that its iterations add to a sequence vary in rank")
    final = []
    for operand, kind, full in zip(last, kinds, filled, strict=True):
        value = value_of(operand, kind)
        final.append(
            entry_at(d, value, d.constant(0, DType.INT64)) if full and isinstance(value, RuntimeValue) else value
        )
    return (*final, *stacked)


def _set_ranks(
    node: Node, values: Sequence[Value], state: list[int], each: Body, kinds: list[ValueType], after: list[ValueType]
) -> bool:
    """Set the rank of the tensors in the state's sequences in `kinds`, if iterations preserve it; whether they do."""
    said, lists = list(kinds), [at for at, kind in enumerate(kinds) if kind.kind == "sequence"]
    for at in lists:
        kinds[at] = (
            EMPTY
            if isinstance(value := values[at], Sequence_) and not value.items
            else with_rank(type_of(node.draft, value))
        )
    try:
        _trial_iteration(node, state, each)
        for at in lists:
            kinds[at] = with_rank(with_entry(kinds[at], after[at].element or ValueType("tensor")))
        _trial_iteration(node, state, each)
        agreed = all(entry_rank(after[at]) == entry_rank(kinds[at]) for at in lists)
    except (ModelError, RuleError):  # an iteration reads from a sequence that is initially empty
        agreed = False
    if not agreed:
        kinds[:] = said
    return agreed


def _trip_count(node: Node, trips: int | None, start: int, initial: list[int], each: Body) -> int | None:
    """The trip count of a loop whose condition only counts; None for any other loop."""
    d = node.draft
    loop, condition = _trial_iteration(node, initial, each)
    times = loop.trip_bounds(condition)
    if times is None:
        return None
    bounds = [Expression(d, found) + 1 for found in times]
    total = None if trips is None else Expression(d, trips)
    for bound in bounds:
        total = bound if total is None else total.at_most(bound)
    if total is None:
        return None
    goes = d.value(start)
    return (
        total.operand if goes is not None and bool(goes) else (total * Expression(d, start).cast(DType.INT64)).operand
    )


def _trial_iteration(node: Node, initial: list[int], each: Body) -> tuple[LoopBody, int]:
    """Build one iteration in a draft that is discarded, and return it with the condition for the next one."""
    d = node.draft
    made = node.enclosing.subgraph_count()
    inner, scope = node.enclosing.nested("body")
    at, go = inner.input(TensorType(DType.INT64, ())), inner.input(TensorType(DType.BOOL, ()))
    state = [inner.input(d.type(i).with_data(None)) for i in initial]
    try:
        condition, following, _ = each(inner, scope, at, go, state)
    finally:
        node.enclosing.truncate_subgraphs(made)
    return LoopBody(d, inner, at, go, state, following, initial), condition


def _without_condition(each: Body) -> Body:
    """Iterations of a loop with a known trip count, which need no condition."""

    def made(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        _, following, items = each(inner, scope, at, go, now)
        return go, following, items

    return made


def _state_type(d: Draft, value: Value, declared: ValueDeclaration) -> ValueType:
    """The type of a state value that holds in every iteration; for a sequence, only its element type."""
    found = type_of(d, value)
    if found.kind == "tensor":
        return found
    said = declared.type if declared.type is not None and declared.type.kind == found.kind else found
    return without_shape(said)


def _unrolled(
    node: Node, body: Graph, trips: int | None, start: int, values: Sequence[Value]
) -> tuple[Value | None, ...] | None:
    """The unrolled loop; None unless its trip count is constant and small."""
    d = node.draft
    most, go = None if trips is None else d.value(trips), d.value(start)
    if most is None or go is None or int(most) > _UNROLLED:
        return None
    state, lists = list(values), [list[int]() for _ in body.outputs[1 + len(values) :]]
    for at in range(int(most)):
        if not bool(go):
            break
        made = node.enclosing.subgraph_count()
        found = node.enclosing.inline(body, (d.constant(at, DType.INT64), d.constant(go, DType.BOOL), *state))
        following = d.value(found[0]) if isinstance(found[0], int) else None
        if following is None:
            node.enclosing.truncate_subgraphs(made)
            return None
        go = following.reshape(())
        state = list(found[1 : 1 + len(values)])
        for items, item in zip(lists, tensors(found[1 + len(values) :], "the body's results"), strict=True):
            items.append(item)
    if lists and not lists[0]:
        return None
    return (*state, *(d.add(Pack(0), *items) for items in lists))


def _scan(node: Node) -> tuple[Value, ...]:
    """A loop over the entries of some tensors along an axis, with a state."""
    if node.version < 9:
        return _scan_of_batches(node)
    d, body = node.draft, node.graph("body")
    scanned = node.integer("num_scan_inputs")
    operands = list(node.operands())
    count = len(operands) - scanned
    if not 1 <= scanned <= len(operands) or len(body.inputs) != len(operands) or len(body.outputs) < count:
        raise ModelError(f"the body has {len(body.inputs)} inputs for {len(operands)} operands, {scanned} scanned")
    sources = operands[count:]
    axes = node.integers("scan_input_axes") or (0,) * scanned
    backwards = node.integers("scan_input_directions") or (0,) * scanned
    outputs = len(body.outputs) - count
    placed = node.integers("scan_output_axes") or (0,) * outputs
    turned = node.integers("scan_output_directions") or (0,) * outputs
    if len(axes) != scanned or len(backwards) != scanned or len(placed) != outputs or len(turned) != outputs:
        raise ModelError("its axes and directions do not fit its inputs and outputs")
    places = [normalize_axis(a, require_rank(d, s, 1)) for a, s in zip(axes, sources, strict=True)]
    steps = reshape(d, dimension(d, sources[0], places[0]), ())

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        entries = []
        for source, axis, back in zip(sources, places, backwards, strict=True):
            index = at
            if back:
                last = inner.add(Binary(BinaryKind.SUB), capture(d, inner, steps), inner.constant(1, DType.INT64))
                index = inner.add(Binary(BinaryKind.SUB), last, at)
            entries.append(inner.add(Gather(axis), capture(d, inner, source), index))
        found = tensors(scope.inline(body, (*now, *entries)), "the body's results")
        return go, found[:count], found[count:]

    last, lists = add_loop(node, steps, d.constant(np.array(True), DType.BOOL), operands[:count], each)
    return (*last, *(_oriented(d, x, axis, back) for x, axis, back in zip(lists, placed, turned, strict=True)))


def _scan_of_batches(node: Node) -> tuple[Value, ...]:
    """Scan before opset 9: all operands are batches, whose items are scanned one by one; input 0 is their lengths."""
    d = node.draft
    if node.has(0):
        raise ModelError("sequence_lens (input 0) is not supported")
    operands = [node.input(at) for at in range(1, len(node.inputs))]
    batch = d.type(operands[0]).shape[0] if require_rank(d, operands[0], 1) else None
    if batch is None or not 1 <= batch <= _UNROLLED:
        raise ModelError(f"has batch {d.type(operands[0])}, expected a known size of 1 to {_UNROLLED}")
    attributes = dict(node.attributes)
    if "directions" in attributes:
        attributes["scan_input_directions"] = attributes.pop("directions")
    found = []
    for at in range(batch):
        items = tuple(d.add(Gather(0), i, d.constant(at, DType.INT64)) for i in operands)
        found.append(tensors(_scan(evolve(node, version=9, inputs=items, attributes=attributes)), "its results"))
    return tuple(d.add(Pack(0), *each) for each in zip(*found, strict=True))


def _oriented(d: Draft, x: int, axis: int, backwards: int) -> int:
    """The list with its entries along an axis, reversed if `backwards`."""
    if backwards:
        x = d.add(Reverse(), x, ints(d, [0], DType.INT32))
    return along(d, x, axis)


def along(d: Draft, x: int, axis: int) -> int:
    """The list with its first axis moved to `axis`."""
    rank = require_rank(d, x)
    to = normalize_axis(axis, rank)
    order = list(range(1, rank))
    order.insert(to, 0)
    return transpose(d, x, order)


TABLE: dict[str, Importer] = {"If": _if, "Loop": _loop, "Scan": _scan}
