"""Adding scattered rows to a variable without a temporary tensor of the variable's size."""

from __future__ import annotations

from onert.flow.builder import Builder
from onert.flow.graph import Function, Graph, Operation, Variable
from onert.frontend.flow.attributes import boolean, integer

from .rewriting import detach, forget, is_assigned_between, is_internal, remove, rewire


def add_rows_in_place(flow: Graph) -> bool:
    """Add scattered rows directly to the variable.

    AssignAdd(w, Scatter(i, v))          -->  AssignAddScatter(w, i, v)
    Assign(w, Add(w, Scatter(i, v)))     -->  AssignAddScatter(w, i, v)
    AssignAdd(w, Add(Scatter(i, v), y))  -->  AssignAddScatter(w, i, v); AssignAdd(w, y)
    """
    changed = False
    for operation in list(flow.ops.values()):
        if operation.func is None or len(operation.inputs) != 2 or operation.type not in ("AssignAdd", "Assign"):
            continue
        target, value = operation.inputs
        total = _sum(value, operation)
        if operation.type == "AssignAdd" and _is_scattered(value, operation, target):
            _put(flow, operation, value)
        elif operation.type == "AssignAdd" and total is not None and _may_split(total, operation):
            _split(flow, operation, total)
        elif operation.type == "Assign" and total is not None and _is_scattered(_other(total, target), total, target):
            _put(flow, operation, _other(total, target))
        else:
            continue
        changed = True
    return changed


def _sum(value: Variable, reader: Operation) -> Operation | None:
    """The addition that computes a variable which only `reader` uses; None if there is none."""
    total = value.producer
    if total is None or total.type != "Add" or total.func is not reader.func:
        return None
    if not len(total.inputs) == len(set(total.inputs)) == 2 or len(total.outputs) != 1:
        return None
    return total if is_internal(value, reader) and not is_assigned_between(total, reader) else None


def _other(total: Operation, target: Variable) -> Variable:
    """The term that is added to `target`; `target` itself if it is not one of the terms."""
    others = [v for v in total.inputs if v is not target]
    return others[0] if len(others) == 1 else target


def _is_scattered(value: Variable, reader: Operation, target: Variable) -> bool:
    """Whether a variable consists of scattered rows that only `reader` uses."""
    scatter = value.producer
    if scatter is None or scatter.type != "Scatter" or scatter.func is not reader.func:
        return False
    if len(scatter.inputs) != 2 or len(scatter.outputs) != 1:
        return False
    fits = list(value.shape) == list(target.shape) and value.type == target.type.removeprefix("&")
    return fits and is_internal(value, reader) and not is_assigned_between(scatter, reader)


def _put(flow: Graph, operation: Operation, value: Variable) -> None:
    """Turn an assignment of scattered rows into an operation that adds them to the variable."""
    (target, assigned), scatter = operation.inputs, value.producer
    assert scatter is not None
    rows, outputs = list(scatter.inputs), list(operation.outputs)
    detach(operation)
    if assigned is not value:
        assert assigned.producer is not None
        remove(flow, assigned.producer)
    remove(flow, scatter)
    rewire(operation, "AssignAddScatter", [target, *rows], outputs)
    operation.attrs = {**operation.attrs, **scatter.attrs}
    forget(flow, [assigned, value])


def _may_split(total: Operation, operation: Operation) -> bool:
    """Whether the terms of a sum may be added one after the other, and one of them is scattered rows.

    Other readers of the variable might have to precede both additions, so there must be none.
    """
    target = operation.inputs[0]
    readers = [o for o in target.consumers if o.func is operation.func]
    shapes = {tuple(v.shape) for v in (target, *total.inputs)}
    scattered = any(_is_scattered(v, total, target) for v in total.inputs)
    return scattered and readers == [operation] and len(shapes) == 1 and not operation.outputs


def _split(flow: Graph, operation: Operation, total: Operation) -> None:
    """Add the two terms of a sum with two operations, the first of them new."""
    (target, value), (first, second), function = operation.inputs, total.inputs, operation.func
    assert function is not None
    remove(flow, total)
    rewire(operation, "AssignAdd", [target, second], ())
    forget(flow, [value])
    name = f"{operation.name}/first"
    while name in flow.ops:
        name += "_"
    before = flow.op(name)
    before.attrs = dict(operation.attrs)
    rewire(before, "AssignAdd", [target, first], ())
    before.func = function
    function.ops.insert(function.ops.index(operation), before)


def join_added_rows(flow: Graph) -> bool:
    """Join operations that add rows to one variable, so that no copy of it is needed in between.

    AssignAddScatter(w, i, v); AssignAddScatter(w, j, u)  -->  AssignAddScatter(w, Concat(i, j), Concat(v, u))
    """
    changed = False
    for function in flow.funcs.values():
        adding: dict[Variable, list[Operation]] = {}
        for operation in function.ops:
            if operation.type == "AssignAddScatter" and len(operation.inputs) == 3 and not operation.outputs:
                adding.setdefault(operation.inputs[0], []).append(operation)
        for target, operations in adding.items():
            if _may_join(function, target, operations):
                _join(flow, function, operations)
                changed = True
    return changed


def _may_join(function: Function, target: Variable, operations: list[Operation]) -> bool:
    """Whether these operations are the variable's only readers, with indices of the same form."""
    readers = {o for o in target.consumers if o.func is function}
    forms = {(_depth(o.inputs[1]), o.inputs[1].type, o.inputs[2].type, o.attrs.get("task")) for o in operations}
    known = all(v.shape_defined() for o in operations for v in o.inputs)
    last = operations[-1]
    moved = any(is_assigned_between(o, last) for o in operations[:-1])
    return len(operations) > 1 and readers == set(operations) and len(forms) == 1 and known and not moved


def _depth(indices: Variable) -> int:
    """The number of dimensions that an index covers."""
    return indices.shape[-1] if indices.shape else 1


def _join(flow: Graph, function: Function, operations: list[Operation]) -> None:
    """Make the last operation add all rows."""
    target, last, count = operations[0].inputs[0], operations[-1], len(function.ops)
    f = Builder(flow, function)
    parts = [_rows(f, operation) for operation in operations]
    indices, rows = (f.concat(list(side), axis=0) for side in zip(*parts, strict=True))
    made = function.ops[count:]
    del function.ops[count:]
    for operation in operations[:-1]:
        remove(flow, operation)
    rewire(last, "AssignAddScatter", [target, indices, rows], ())
    last.attrs = {name: value for name, value in last.attrs.items() if name not in ("batch", "pooled")}
    at = function.ops.index(last)
    function.ops[at:at] = made


def _rows(f: Builder, operation: Operation) -> tuple[Variable, Variable]:
    """The indices of an operation as [rows, depth], and a row of the variable for each."""
    target, indices, value = operation.inputs
    depth = _depth(indices)
    places, row = indices.shape[:-1], target.shape[depth:]
    wide = [*places, *row]
    if boolean(operation.attrs.get("pooled", "0")):
        lead = value.shape[: integer(operation.attrs.get("batch", "0"))]
        value = f.reshape(value, [*lead, *(1,) * (len(places) - len(lead)), *row])
    if list(value.shape) != wide:
        value = f.broadcast(value, wide)
    count = 1
    for size in places:
        count *= size
    return f.reshape(indices, [count, depth]), f.reshape(value, [count, *row])
