"""A function's gradient: adjoints propagated from its outputs to its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onert.flow.builder import Builder
from onert.flow.graph import Function, Graph, Operation, Variable
from onert.frontend.flow.file import OperationFlag, VariableFlag
from onert.ir import CompileError, ModelError, OnertError

Term = Callable[[], Variable]
GradientRule = Callable[["Gradients", Operation], Sequence[Term | None]]
"""For each input of an operation, a function that adds its term of the input's adjoint; None if it has no derivative.

A term may have the shape to which the input was broadcast.
"""
_FLOATS = ("float16", "half", "float32", "float", "float64", "double", "bfloat16")


def gradient_name(name: str, function: str) -> str:
    """The name of a variable's adjoint: `gradients/a/d_b` for `a/b`, and `gradients/function/d_b` for `b`."""
    prefix, slash, last = name.rpartition("/")
    return f"gradients/{prefix if slash else function}/d_{last}"


def gradient(flow: Graph, function: Function, rules: Mapping[str, GradientRule]) -> Function:
    """Add the gradient of a function to a flow. Raises ModelError if it exists.

    Raises CompileError, which lists all operations between inputs and outputs whose type has no rule.
    """
    made = Gradients(flow, function)
    made.build(rules)
    return made.function


class Gradients(Builder):
    """Builds the gradient of a function.

    Operands may be variables of that function: they are read through references, and computed ones become outputs, so
    that an instance stores them.
    """

    def __init__(self, flow: Graph, primal: Function) -> None:
        name = f"gradients/{primal.name}"
        if name in flow.funcs:
            raise ModelError(f"function '{primal.name}' has a gradient already, '{name}'")
        self.function = flow.func(name)
        self.function.training = True
        super().__init__(flow, self.function)
        self._primal = primal
        self._instance: Variable | None = None
        self._own: set[Variable] = set()
        self._references: dict[Variable, Variable] = {}
        self._terms: dict[Variable, list[Variable]] = {}
        self._totals: dict[Variable, Variable] = {}

    def build(self, rules: Mapping[str, GradientRule]) -> None:
        """Add all operations."""
        _, operations = self.flow.order(self._primal)
        varied = self._varied(operations)
        outputs = [v for o in operations for v in o.outputs if v in varied and _leaves(v)]
        for variable in outputs:
            self._terms[variable] = [self._adjoint(variable)]
            self._terms[variable][0].input = True
        missing = []
        for operation in reversed(operations):
            if _is_left_out(operation) or not any(v in self._terms for v in operation.outputs):
                continue
            if not any(v in varied for v in operation.inputs):
                continue
            rule = rules.get(operation.type)
            if rule is None:
                missing.append(f"operation '{operation.name}' {operation.type}")
                continue
            try:
                self._add_terms(operation, rule, varied)
            except OnertError as error:
                raise ModelError(f"gradient of operation '{operation.name}' {operation.type}: {error}") from error
            except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
                raise ModelError(
                    f"operation '{operation.name}' {operation.type} cannot be differentiated: "
                    f"{type(error).__name__}: {error}"
                ) from error
        if missing:
            raise CompileError(f"there is no gradient for {', '.join(missing)}")
        for variable in dict.fromkeys(v for o in operations for v in o.inputs if v.producer is None):
            if variable in self._terms:
                self._finish(variable)

    def _add_terms(self, operation: Operation, rule: GradientRule, varied: set[Variable]) -> None:
        """Add an operation's terms to the adjoints of its inputs."""
        for variable, term in zip(operation.inputs, rule(self, operation), strict=True):
            if term is not None and variable in varied:
                self._terms.setdefault(variable, []).append(self.summed_to(term(), variable.shape))

    def _varied(self, operations: Iterable[Operation]) -> set[Variable]:
        """The differentiable inputs, and the variables that depend on them."""
        found: set[Variable] = set()
        for operation in operations:
            found |= {v for v in operation.inputs if v.producer is None and _is_variable(v)}
            if not _is_left_out(operation) and any(v in found for v in operation.inputs):
                found |= {v for v in operation.outputs if _has_adjoint(v)}
        return found

    # ---- for rules

    def adjoint(self, variable: Variable) -> Variable:
        """The adjoint of a variable that the function computes; zeros if no output depends on it."""
        terms = self._terms.get(variable)
        if terms is None:
            return self.broadcast(self.const(0.0, variable.type.removeprefix("&")), variable.shape)
        if variable not in self._totals:
            self._totals[variable] = self._total(variable, terms)
        return self._totals[variable]

    def has_adjoint(self, variable: Variable) -> bool:
        """Whether an output depends on a variable."""
        return variable in self._terms

    def value(self, given: Any, like: str | None = None) -> Variable:
        """A variable as this function reads it: through a reference if it belongs to the primal function."""
        found = super().value(given, like)
        mine = found in self._own or (found.producer is not None and found.producer.func is self.func)
        if mine or found.data is not None or found.learnable:
            return found
        if found not in self._references:
            self._references[found] = self._referred(found)
        return self._references[found]

    def var(self, name: str, dtype: str = "float32", shape: Sequence[int] = ()) -> Variable:
        found = super().var(name, dtype, shape)
        self._own.add(found)
        return found

    def summed_to(self, x: Variable, shape: Sequence[int]) -> Variable:
        """`x` summed over the dimensions in which a variable of this shape was broadcast."""
        if list(x.shape) == list(shape):
            return x
        if all(size == 1 for size in shape):
            return self._shaped(self.sum(x), shape)
        extra = x.rank() - len(shape)
        for axis in range(x.rank()):
            if axis < extra or (shape[axis - extra] == 1 and x.shape[axis] != 1):
                x = self.sum(x, axis, keepdims=True)
        return self._shaped(x, shape)

    def _shaped(self, x: Variable, shape: Sequence[int]) -> Variable:
        return x if list(x.shape) == list(shape) else self.reshape(x, shape)

    # ---- adjoints

    def _adjoint(self, variable: Variable) -> Variable:
        """A new variable with the name of another one's adjoint."""
        found = self.flow.var(self._adjoint_name(variable), variable.type.removeprefix("&"), variable.shape)
        found.ref = variable.ref
        self._own.add(found)
        return found

    def _adjoint_name(self, variable: Variable) -> str:
        """An unused name for a variable's adjoint."""
        name = variable.attr("gradient") or gradient_name(variable.name, self._primal.name)
        return name if name not in self.flow.vars else self.varname(f"d_{variable.name.rpartition('/')[2]}")

    def _total(self, variable: Variable, terms: Sequence[Variable]) -> Variable:
        """The sum of the terms of an adjoint; `acc_x` combines an output's own adjoint with those from its readers."""
        total = terms[0]
        for term in terms[1:]:
            total = self.add(total, term)
        if len(terms) > 1 and terms[0] in self._own:
            last = variable.name.rpartition("/")[2]
            self.rename(total, self.varname(f"acc_{last}").removeprefix(f"{self.function.name}/"))
        elif total.producer is not None and total not in self._own:
            name = gradient_name(variable.name, self._primal.name)
            if name not in self.flow.vars:
                self._named(total, name)
        return total

    def _named(self, variable: Variable, name: str) -> None:
        self.flow.vars.pop(variable.name)
        variable.name = name
        self.flow.vars[name] = variable
        self._own.add(variable)

    def _finish(self, variable: Variable) -> None:
        """Make an input's adjoint an output, or add it to the accumulated adjoint of a learnable variable."""
        terms = self._terms[variable]
        total = terms[0]
        for term in terms[1:]:
            total = self.add(total, term)
        if not variable.learnable and total.producer is not None and total not in self._own:
            self._named(total, self._adjoint_name(variable))
            total.ref, total.output = variable.ref, True
            return
        adjoint = self._adjoint(variable)
        if variable.learnable:
            add = self.rawop("AssignAdd", f"add_{variable.name.rpartition('/')[2]}")
            add.add_input(adjoint)
            add.add_input(total)
            connector = self.flow.cnx(f"gradients/{variable.name}")
            connector.add(variable)
            connector.add(adjoint)
            return
        operation = self.rawop("Identity")
        operation.add_input(total)
        operation.add_output(adjoint)
        adjoint.output = True

    def _referred(self, variable: Variable) -> Variable:
        """A reference to a variable in the instance of the primal function."""
        if self._instance is None:
            self._instance = self.var("primal", "resource")
            self._instance.ref = self._instance.input = True
        last = variable.name.rpartition("/")[2]
        if variable.producer is not None:
            variable.output = True
        operation = self.rawop("Reference", f"ref_{last}")
        operation.add_input(self._instance)
        operation.add_attr("var", variable.name)
        found = self.flow.var(
            self.varname(f"ref_{last}"),
            variable.type.removeprefix("&"),
            variable.shape,
        )
        found.ref = True
        operation.add_output(found)
        return found


def _has_adjoint(variable: Variable) -> bool:
    return variable.type.removeprefix("&") in _FLOATS and not variable.flags & VariableFlag.NOGRADIENT


def _is_variable(variable: Variable) -> bool:
    """Whether a variable that no operation computes is differentiable."""
    return (variable.data is None or variable.learnable) and _has_adjoint(variable)


def _is_left_out(operation: Operation) -> bool:
    return bool(operation.flags & OperationFlag.NOGRADIENT)


def _leaves(variable: Variable) -> bool:
    """Whether a computed variable is a result of its function."""
    return variable.output or variable.ref or not variable.consumers
