"""Optimizers: functions that update learnable variables against their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from onert.flow.builder import Builder
from onert.flow.gradients import GRADIENTS, GradientRule, gradient
from onert.flow.graph import DT_FLOAT32, Graph, Variable
from onert.ir import ModelError


class Optimizer(ABC):
    """A function of a flow, by default `optimizer`, that updates all learnable variables once.

    Its input `alpha` is the learning rate. `optimizer/gradients/f` refers to the instance of `gradients/f` with the
    adjoints. With `decay`, variables also shrink by that fraction times the learning rate; with `clipping`, adjoints
    are scaled so that their norm, taken over all of them, does not exceed that value.
    """

    def __init__(self, name: str = "optimizer", *, decay: float = 0.0, clipping: float = 0.0) -> None:
        self.name = name
        self.decay = decay
        self.clipping = clipping

    def build(self, flow: Graph, rules: Mapping[str, GradientRule] = GRADIENTS) -> Builder:
        """Add the function, and the gradients of all functions with the flag `backprop` that have none yet.

        Raises ModelError if no gradient depends on a learnable variable, and CompileError as `gradient` does.
        """
        for function in list(flow.funcs.values()):
            if function.backprop and f"gradients/{function.name}" not in flow.funcs:
                gradient(flow, function, rules)
        f = Builder(flow, self.name)
        adjoints = self._adjoints(f)
        if not adjoints:
            raise ModelError("there is nothing to learn: no function with a gradient reads a learnable variable")
        if self.clipping:
            adjoints = self._clipped(f, adjoints)
        alpha = f.var("alpha", DT_FLOAT32)
        alpha.input = True
        rates = {DT_FLOAT32: alpha}
        for variable, adjoint in adjoints.items():
            if variable.type not in rates:
                rates[variable.type] = f.cast(alpha, variable.type)
            rate = rates[variable.type]
            step = self._step(f, variable, adjoint, rate)
            if self.decay:
                step = f.add(step, f.mul(variable, f.mul(rate, self.decay)))
            f.assign(variable, f.sub(variable, step))
        return f

    def _adjoints(self, f: Builder) -> dict[Variable, Variable]:
        """The learnable variables, each with the sum of its adjoints over all gradients."""
        instances: dict[str, Variable] = {}
        found: dict[Variable, Variable] = {}
        for variable in [v for v in f.flow.vars.values() if v.learnable]:
            connector = f.flow.cnxs.get(f"gradients/{variable.name}")
            for adjoint in () if connector is None else connector.links[1:]:
                owner = adjoint.consumers[0].func
                assert owner is not None
                if owner.name not in instances:
                    instances[owner.name] = instance = f.var(owner.name, "resource")
                    instance.ref = instance.input = True
                reference = f.ref(instances[owner.name], adjoint)
                found[variable] = f.add(found[variable], reference) if variable in found else reference
        return found

    def _clipped(self, f: Builder, adjoints: Mapping[Variable, Variable]) -> dict[Variable, Variable]:
        """The adjoints, scaled if their norm is too large."""
        squares = [f.cast(f.sum(f.square(adjoint)), DT_FLOAT32) for adjoint in adjoints.values()]
        total = squares[0]
        for square in squares[1:]:
            total = f.add(total, square)
        norm = f.maximum(f.sqrt(total), self.clipping)
        scale = f.div(f.const(self.clipping), norm)
        return {v: f.mul(adjoint, f.cast(scale, v.type)) for v, adjoint in adjoints.items()}

    def _state(self, f: Builder, what: str, variable: Variable) -> Variable:
        """An optimizer's own variable for a learnable one, initially zeros."""
        return f.var(f"{what}/{variable.name}", variable.type, variable.shape)

    @abstractmethod
    def _step(self, f: Builder, variable: Variable, adjoint: Variable, alpha: Variable) -> Variable:
        """The value to subtract from a variable."""


class GradientDescentOptimizer(Optimizer):
    """`w - alpha · g`."""

    def _step(self, f: Builder, variable: Variable, adjoint: Variable, alpha: Variable) -> Variable:
        return f.mul(adjoint, alpha)


class MomentumOptimizer(Optimizer):
    """`w - alpha · u`, where `u` becomes `momentum · u + g`."""

    def __init__(
        self, name: str = "optimizer", momentum: float = 0.9, *, decay: float = 0.0, clipping: float = 0.0
    ) -> None:
        super().__init__(name, decay=decay, clipping=clipping)
        self.momentum = momentum

    def _step(self, f: Builder, variable: Variable, adjoint: Variable, alpha: Variable) -> Variable:
        velocity = self._state(f, "velocity", variable)
        faster = f.add(f.mul(velocity, self.momentum), adjoint)
        f.assign(velocity, faster)
        return f.mul(faster, alpha)


class AdamOptimizer(Optimizer):
    """Adam: steps scaled by the mean of the gradients over the root of the mean of their squares.

    `m` becomes `beta1 · m + (1 - beta1) · g` and `v` becomes `beta2 · v + (1 - beta2) · g²`; in step `t` the variable
    becomes `w - alpha · √(1 - beta2ᵗ) / (1 - beta1ᵗ) · m / (√v + epsilon)`. Source: Kingma and Ba, Adam, section 2.
    """

    def __init__(
        self,
        name: str = "optimizer",
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-7,
        *,
        decay: float = 0.0,
        clipping: float = 0.0,
    ) -> None:
        super().__init__(name, decay=decay, clipping=clipping)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self._rates: dict[Variable, Variable] = {}

    def build(self, flow: Graph, rules: Mapping[str, GradientRule] = GRADIENTS) -> Builder:
        self._rates = {}
        return super().build(flow, rules)

    def _step(self, f: Builder, variable: Variable, adjoint: Variable, alpha: Variable) -> Variable:
        mean, square = self._state(f, "mean", variable), self._state(f, "square", variable)
        new_mean = f.add(f.mul(mean, self.beta1), f.mul(adjoint, 1 - self.beta1))
        new_square = f.add(f.mul(square, self.beta2), f.mul(f.square(adjoint), 1 - self.beta2))
        f.assign(mean, new_mean)
        f.assign(square, new_square)
        rate = self._rate(f, alpha)
        return f.mul(f.div(new_mean, f.add(f.sqrt(new_square), self.epsilon)), rate)

    def _rate(self, f: Builder, alpha: Variable) -> Variable:
        """The learning rate of this step, in the element type of `alpha`."""
        if alpha not in self._rates:
            count = f.var(f"steps/{alpha.type}", alpha.type)
            steps = f.add(count, 1.0)
            f.assign(count, steps)
            first, second = (f.sub(1.0, f.pow(f.const(beta, alpha.type), steps)) for beta in (self.beta1, self.beta2))
            self._rates[alpha] = f.div(f.mul(alpha, f.sqrt(second)), first)
        return self._rates[alpha]
