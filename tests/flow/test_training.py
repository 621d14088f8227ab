"""Training: optimizers follow their formulas, and the digits classifier is trained with flows alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.flow.training import (
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    cross_entropy,
    squared_error,
)
from onert.ir import Array, ModelError

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "digits_flow" / "train.py"
START = np.array([0.5, -1.0, 2.0])
TARGET = np.array([1.0, 1.0, -1.0])
RATE = 0.1
Steps = Callable[[Callable[[Array], Array]], Iterator[Array]]
"""Given the gradient as a function of the point, yields the points that the formula visits."""


def descent(gradient: Callable[[Array], Array]) -> Iterator[Array]:
    w = START.copy()
    while True:
        w = w - RATE * gradient(w)
        yield w


def momentum(gradient: Callable[[Array], Array]) -> Iterator[Array]:
    w, u = START.copy(), np.zeros(3)
    while True:
        u = 0.8 * u + gradient(w)
        w = w - RATE * u
        yield w


def adam(gradient: Callable[[Array], Array]) -> Iterator[Array]:
    w, m, v, t = START.copy(), np.zeros(3), np.zeros(3), 0
    while True:
        t += 1
        g = gradient(w)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - RATE * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-9)
        yield w


def decaying(gradient: Callable[[Array], Array]) -> Iterator[Array]:
    w = START.copy()
    while True:
        w = w - RATE * gradient(w) - RATE * 0.5 * w
        yield w


def clipped(gradient: Callable[[Array], Array]) -> Iterator[Array]:
    w = START.copy()
    while True:
        g = gradient(w)
        w = w - RATE * g * min(1.0, 0.25 / np.linalg.norm(g))
        yield w


OPTIMIZERS: dict[str, tuple[Optimizer, Steps]] = {
    "descent": (GradientDescentOptimizer(), descent),
    "momentum": (MomentumOptimizer(momentum=0.8), momentum),
    "adam": (AdamOptimizer(epsilon=1e-9), adam),
    "decay": (GradientDescentOptimizer(decay=0.5), decaying),
    "clipping": (GradientDescentOptimizer(clipping=0.25), clipped),
    "clipping of nothing": (GradientDescentOptimizer(clipping=100.0), descent),
}


@pytest.mark.parametrize("dtype", [myelin.DT_FLOAT, myelin.DT_DOUBLE])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_follows_its_formula(name: str, dtype: str) -> None:
    optimizer, steps = OPTIMIZERS[name]
    flow = myelin.Flow()
    f = flow.define("f")
    weight = f.parameter("W", dtype, [3], START.astype(dtype))
    squared_error(f, weight, f.const(TARGET.astype(dtype)))
    f.func.backprop = True
    optimizer.build(flow)
    net = compiled(flow)
    data, back, update = (net.cell(c).instance() for c in ("f", "gradients/f", "optimizer"))
    update["optimizer/alpha"] = RATE
    for expected, _ in zip(steps(lambda w: 2 * (w - TARGET) / 3), range(4), strict=False):
        data.compute()
        back.clear()
        if "gradients/f/primal" in net.parameters.numbers:
            back["gradients/f/primal"] = data
        back["gradients/f/d_loss:0"] = 1
        back.compute()
        update["optimizer/gradients/f"] = back
        update.compute()
        np.testing.assert_allclose(net[weight], expected, rtol=1e-5)


def test_gradients_of_several_functions_are_added() -> None:
    flow = myelin.Flow()
    f, g = flow.define("f"), flow.define("g")
    weight = f.parameter("W", shape=[2], value=np.array([1, 2], "f4"))
    f.sum(f.mul(weight, 3.0), name="y")
    g.sum(g.square(weight), name="y")
    for builder in (f, g):
        builder.func.backprop = True  # type: ignore[union-attr]
    GradientDescentOptimizer().build(flow)
    net = compiled(flow)
    update = net.cell("optimizer").instance()
    update["optimizer/alpha"] = 1
    for name in "fg":
        data, back = net.cell(name).instance(), net.cell(f"gradients/{name}").instance()
        data.compute()
        if f"gradients/{name}/primal" in net.parameters.numbers:
            back[f"gradients/{name}/primal"] = data
        back[f"gradients/{name}/d_y:0"] = 1
        back.compute()
        update[f"optimizer/gradients/{name}"] = back
    update.compute()
    assert list(net[weight]) == [1 - 3 - 2, 2 - 3 - 4]


def test_mismatched_labels_and_flows_without_learnable_variables_are_rejected() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", shape=[2, 3])
    with pytest.raises(ModelError, match=r"cross_entropy is given logits \[2, 3\] and labels \[3\]"):
        cross_entropy(f, x, [0, 1, 2])
    with pytest.raises(ModelError, match="there is nothing to learn"):
        GradientDescentOptimizer().build(flow)


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_flow_train", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_on_digits_reaches_the_accuracy_of_the_packaged_classifier() -> None:
    """The packaged classifier has an accuracy of 0.9844 on the same pictures."""
    train = example()
    images, labels, test_images, test_labels = train.data()
    weights = train.trained(train.starting(np.random.default_rng(0)), images, labels, epochs=40, seed=1)
    assert train.accuracy(weights, test_images, test_labels) >= 0.9844 - 0.01
