"""Fusion of elementwise operations into one operation, `Calculate`, whose recipe says what it computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from attrs import frozen

from onert.flow.graph import Function, Graph, Operation, Variable
from onert.frontend.flow.table.elementwise import FUNCTIONS, RENAMED
from onert.frontend.flow.table.reductions import KINDS

from .rewriting import forget, is_assigned_between, remove, rewire


@frozen(eq=False)
class Call:
    """A function applied to variables and other calls."""

    name: str
    arguments: tuple[Variable | Call, ...]

    def leaves(self) -> Iterator[Variable]:
        for argument in self.arguments:
            if isinstance(argument, Variable):
                yield argument
            else:
                yield from argument.leaves()

    def with_call(self, variable: Variable, call: Call) -> Call:
        """The call with a variable replaced by another call."""
        found = tuple(
            (call if a is variable else a) if isinstance(a, Variable) else a.with_call(variable, call)
            for a in self.arguments
        )
        return Call(self.name, found)


Expression = Mapping[Variable, Call]
"""The computation of an operation: its results and internal values, in the order in which they are computed."""
_MOST_CALLS = 64
"""The most functions in a recipe, limited by a loop's registers and by readability."""


class Expressions:
    """Merges operations of one function over elements of one shape. Each compilation needs a new object.

        t = Sub(x, m); y = Exp(t); s = Sum(y)  -->  y, s = Calculate(x, m) with @0=Exp(Sub(%0,%1));@1=Sum(@0)

    Operations that read the same tensor are merged too if they are independent. A result with other readers, or that is
    an output of the function, stays a result. Two operations are not merged if a third one between them depends on the
    first, if the second reads the result of a reduction in the first, or if both contain reductions.
    """

    def __init__(self) -> None:
        self._known: dict[Operation, Expression] = {}

    def __call__(self, flow: Graph) -> bool:
        changed = False
        for function in flow.funcs.values():
            places = _places(flow, function)
            for second in list(function.ops):
                while (first := self._mergeable(second, places)) is not None:
                    is_read_elsewhere = self._merge(flow, first, second)
                    if is_read_elsewhere:  # its readers may precede the second
                        places = _places(flow, function)
                    changed = True
            while (pair := self._siblings(function, places)) is not None:
                self._merge(flow, *pair)
                places = _places(flow, function)
                changed = True
        return changed

    def _siblings(self, function: Function, places: Mapping[Operation, int]) -> tuple[Operation, Operation] | None:
        """Two independent operations that read the same tensor, in order."""
        for variable in dict.fromkeys(v for o in function.ops for v in o.inputs if v.shape):
            readers = sorted(dict.fromkeys(o for o in variable.consumers if o in places), key=places.__getitem__)
            for first, second in combinations(readers, 2):
                depends = any(v.producer is first for v in second.inputs)
                if not depends and self._may_merge(first, second, places):
                    return first, second
        return None

    def _mergeable(self, second: Operation, places: Mapping[Operation, int]) -> Operation | None:
        """An operation that can be merged into a reader of its result."""
        producers = dict.fromkeys(v.producer for v in second.inputs if v.producer is not None)
        return next((first for first in producers if self._may_merge(first, second, places)), None)

    def _expression(self, operation: Operation) -> Expression | None:
        """The computation of an operation as an elementwise expression; None if it is not elementwise."""
        known = self._known.get(operation)
        if known is not None and operation.type == "Calculate":
            return known
        name = RENAMED.get(operation.type, operation.type)
        plain = name in FUNCTIONS or ((name in KINDS or name == "Count") and "axis" not in operation.attrs)
        if not plain or name == "Id" or "nomerge" in operation.attrs or len(operation.outputs) != 1:
            return None
        if len(operation.inputs) != (FUNCTIONS[name][0] if name in FUNCTIONS else 1):
            return None
        return {operation.outputs[0]: Call(name, tuple(operation.inputs))}

    def _may_merge(self, first: Operation, second: Operation, places: Mapping[Operation, int]) -> bool:
        one, two = self._expression(first), self._expression(second)
        if one is None or two is None or first.func is not second.func:
            return False
        if first.attrs.get("task") != second.attrs.get("task") or not _is_one_format(first, second):
            return False
        reads = any(v.producer is first for v in second.inputs)
        if any(map(_is_reduction, one.values())) and (reads or any(map(_is_reduction, two.values()))):
            return False
        if sum(_count(c) for c in (*one.values(), *two.values())) > _MOST_CALLS:
            return False
        return not (_is_between(first, second, places) or is_assigned_between(first, second))

    def _merge(self, flow: Graph, first: Operation, second: Operation) -> bool:
        """Merge the first operation into the second; returns whether other operations read results of the first."""
        one, two = self._expression(first), self._expression(second)
        assert one is not None
        assert two is not None
        merged: dict[Variable, Call] = {**one, **two}
        stay = [v for v in first.outputs if v.output or any(o is not second for o in v.consumers) or not v.consumers]
        outputs = [*stay, *second.outputs]
        for variable in [v for v in merged if v not in outputs]:
            users = [v for v, call in merged.items() for leaf in call.leaves() if leaf is variable]
            if len(users) == 1:
                call = merged.pop(variable)
                merged[users[0]] = merged[users[0]].with_call(variable, call)
        leaves = dict.fromkeys(leaf for call in merged.values() for leaf in call.leaves() if leaf not in merged)
        gone = [v for v in first.outputs if v not in stay]
        remove(flow, first)
        rewire(second, "Calculate", leaves, outputs)
        forget(flow, gone)
        second.attrs["expr"] = recipe(merged, list(leaves), outputs)
        self._known[second] = merged
        return any(o is not second for v in stay for o in v.consumers)


def _places(flow: Graph, function: Function) -> Mapping[Operation, int]:
    """The operations of a function with their positions in a topological order."""
    return {operation: at for at, operation in enumerate(flow.order(function)[1])}


def _is_reduction(call: Call) -> bool:
    return call.name in KINDS or call.name == "Count"


def _count(call: Call) -> int:
    return 1 + sum(_count(a) for a in call.arguments if isinstance(a, Call))


def _prototype(operation: Operation) -> Sequence[int]:
    """The shape that an operation iterates over: that of its largest operand or result."""
    return max((v.shape for v in (*operation.outputs, *operation.inputs)), key=lambda s: (math.prod(s), len(s)))


def _is_one_format(first: Operation, second: Operation) -> bool:
    """Whether two operations have the same shape and element type, with results of that shape or scalars."""
    shape = list(_prototype(first))
    variables = [*first.inputs, *first.outputs, *second.inputs, *second.outputs]
    if list(_prototype(second)) != shape or any(
        v.type != first.inputs[0].type or not v.shape_defined() for v in variables
    ):
        return False
    return all(list(v.shape) == shape or not v.shape for o in (first, second) for v in o.outputs)


def _is_between(first: Operation, second: Operation, places: Mapping[Operation, int]) -> bool:
    """Whether the second depends on the first through another operation; `places` are topological positions."""
    seen: set[Operation] = set()
    waiting = [v.producer for v in second.inputs if v.producer is not None and v.producer is not first]
    while waiting:
        operation = waiting.pop()
        if operation is first:
            return True
        if operation not in seen and places.get(operation, -1) > places[first]:
            seen.add(operation)
            waiting += [v.producer for v in operation.inputs if v.producer is not None]
    return False


def recipe(expression: Expression, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> str:
    """An expression as text. A scalar constant is `#`, an internal value is `$`."""
    names = {variable: f"@{at}" for at, variable in enumerate(outputs)}
    for at, variable in enumerate(inputs):
        names[variable] = f"{'#' if variable.data is not None and not variable.shape else '%'}{at}"
    for at, variable in enumerate(v for v in expression if v not in outputs):
        names[variable] = f"${at}"

    def text(value: Variable | Call) -> str:
        if isinstance(value, Variable):
            return names[value]
        return f"{value.name}({','.join(map(text, value.arguments))})"

    return ";".join(f"{names[variable]}={text(call)}" for variable, call in _ordered(expression))


def _ordered(expression: Expression) -> Iterator[tuple[Variable, Call]]:
    """The parts of an expression in topological order."""
    done: set[Variable] = set()
    waiting = dict(expression)
    while waiting:
        ready = [
            v for v, call in waiting.items() if all(leaf in done or leaf not in expression for leaf in call.leaves())
        ]
        for variable in ready:
            yield variable, waiting.pop(variable)
            done.add(variable)
