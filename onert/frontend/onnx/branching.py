"""Conditional subgraphs: the branches of an If, and what follows them if their results differ in rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onert.ir import ModelError, RuleError, TensorType
from onert.ir.analysis.model_inference import join
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.control_flow.refuse import Refuse

from .draft import Draft, capture
from .messages import ValueType
from .node import EnclosingGraph, Value
from .runtime_values import join_types, operand_of, type_of, value_of

BranchBuilder = Callable[[EnclosingGraph], Sequence[Value]]
"""Builds one of the subgraphs in its own scope, and returns its results."""


def tensors(values: Sequence[Value], what: str) -> list[int]:
    """The values as operands. Raises ModelError if they are not all tensors."""
    found = [v for v in values if isinstance(v, int)]
    if len(found) != len(values):
        raise ModelError(f"{what} are not all tensors, which is not supported")
    return found


def add_if(d: Draft, enclosing: EnclosingGraph, condition: int, branches: Sequence[BranchBuilder]) -> tuple[Value, ...]:
    """Add an If with two subgraphs. If only one can be built, running the other raises an error."""
    made = enclosing.subgraph_count()
    drafts: list[Draft | None] = []
    results: list[list[int]] = []
    kinds: list[list[ValueType]] = []
    errors: list[ModelError | RuleError] = []
    for build in branches:
        draft, scope = enclosing.nested("branch")
        before = enclosing.subgraph_count()
        try:
            values = build(scope)
            results.append([operand_of(draft, value) for value in values])
            kinds.append([type_of(draft, value) for value in values])
            drafts.append(draft)
        except (ModelError, RuleError) as error:
            enclosing.truncate_subgraphs(before)
            errors.append(error)
            drafts.append(None)
            results.append([])
    whole = next((at for at, draft in enumerate(drafts) if draft is not None), None)
    if whole is None:
        enclosing.truncate_subgraphs(made)
        raise errors[0]
    ready = [draft if draft is not None else enclosing.nested("branch")[0] for draft in drafts]
    for at in (at for at, draft in enumerate(drafts) if draft is None):
        refused = tuple(_type(ready[whole], i) for i in results[whole])
        results[at] = list(ready[at].emit(Refuse(str(errors[0]), refused), (), refused))
    types = _joined(ready, results)
    given = share_captures(d, ready, [()] * len(ready))
    numbers = [enclosing.finish(draft, found) for draft, found in zip(ready, results, strict=True)]
    found = d.emit(If(numbers[0], numbers[1], types, refusable=True), (condition, *given), types)
    known = [join_types(*pair) for pair in zip(*kinds, strict=True)] if len(kinds) == 2 else kinds[0]
    return tuple(value_of(operand, kind) for operand, kind in zip(found, known, strict=True))


def _type(draft: Draft, operand: int) -> TensorType:
    return draft.type(operand).with_data(None)


def _joined(drafts: Sequence[Draft], results: Sequence[Sequence[int]]) -> tuple[TensorType, ...]:
    """The types that hold for both results. Raises ModelError if they differ in number or element type."""
    first, second = ([_type(draft, i) for i in found] for draft, found in zip(drafts, results, strict=True))
    if [t.dtype for t in first] != [t.dtype for t in second]:
        one, other = (", ".join(map(str, types)) for types in (first, second))
        raise ModelError(f"one branch returns {one}, the other {other}, expected the same element types")
    return tuple(join(a, b) for a, b in zip(first, second, strict=True))


def share_captures(d: Draft, drafts: Sequence[Draft], own: Sequence[Sequence[int]]) -> list[int]:
    """The operands captured by any of the subgraphs. All get all of them, in this order, after their own inputs."""
    given: dict[int, None] = {}
    for draft in drafts:
        given.update({outer: None for outer, mine in draft.captured.items() if draft.is_input(mine)})
    for draft, mine in zip(drafts, own, strict=True):
        draft.inputs = [*mine, *(capture(d, draft, outer) for outer in given)]
    return list(given)
