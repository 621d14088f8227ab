"""Element order: variables requested as column-major are stored so everywhere, and results do not change."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.flow.files import flow_file
from onert.frontend.flow.file import encode
from onert.ir import Array, ModelError

RNG = np.random.default_rng(8)
X, W, B = (RNG.standard_normal(shape).astype("f4") for shape in ((3, 5), (5, 7), (3, 7)))
Y = np.maximum(X @ W + B, 0)


def layer(*columns: str) -> myelin.Flow:
    """`y = relu(x · W + b)` with a learnable `W` and a constant `b`; the variables in `columns` are column-major."""
    flow = myelin.Flow()
    f = flow.define("f")
    x, weight, bias = f.var("x", shape=[3, 5]), f.parameter("W", shape=[5, 7], value=W), f.array("b", B)
    y = f.relu(f.add(f.matmul(x, weight), bias), name="y")
    for name, variable in {"x": x, "W": weight, "b": bias, "y": y}.items():
        variable.col, variable.row = name in columns, name not in columns
    return flow


def computed(flow: myelin.Flow) -> tuple[myelin.Network, myelin.Instance]:
    net = compiled(flow)
    data = net.cell("f").instance()
    data["f/x"] = X
    data.compute()
    return net, data


@pytest.mark.parametrize("columns", ["", "x", "W", "b", "y", "xW", "xWby"])
def test_the_element_order_changes_the_layout_but_not_the_values(columns: str) -> None:
    net, data = computed(layer(*columns))
    np.testing.assert_allclose(np.asarray(data["f/y:0"]), Y, rtol=1e-5, atol=1e-6)
    lines = str(net.cell("f")).splitlines()
    for name, tensor in {
        "x": data["f/x"],
        "y": data["f/y:0"],
        "W": net["f/W"],
        "b": net["f/b"],
    }.items():
        array, column_major = np.asarray(tensor), name in columns
        assert (array.flags.f_contiguous, array.flags.c_contiguous) == (column_major, not column_major)
        (line,) = (line for line in lines if f" f/{name}" in line.split("//")[0] and "//" in line)
        assert line.endswith("column-major" if column_major else "row-major")


def test_a_column_major_tensor_exports_a_strided_buffer() -> None:
    _, data = computed(layer("y"))
    y = data["f/y:0"]
    view = memoryview(y)
    assert (view.shape, view.strides, view.f_contiguous, view.readonly) == ((3, 7), (4, 12), True, False)
    assert (y.name(), y.rank(), y.shape(), y.type(), len(y)) == ("f/y:0", 2, [3, 7], "float32", 21)
    y[1, -1] = 9
    assert np.asarray(data["f/y"])[1, 6] == y[13] == list(y)[13] == 9
    data["f/x"] = np.asfortranarray(X * 2)
    data.compute()
    np.testing.assert_allclose(np.asarray(y), np.maximum(2 * X @ W + B, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", ["W", "xWby"])
def test_a_column_major_variable_can_be_assigned_to(order: str) -> None:
    flow = layer(*order)
    step = flow.define("step")
    step.assign(flow.vars["f/W"], step.add(flow.vars["f/W"], 1.0))
    net, _ = computed(flow)
    net.cell("step").instance().compute()
    np.testing.assert_allclose(np.asarray(net["f/W"]), W + 1)
    net["f/W"] = W * 2
    assert np.asarray(net["f/W"])[0, 6] == W[0, 6] * 2
    assert np.asarray(net["f/W"]).flags.f_contiguous


def test_gradients_of_column_major_tensors_are_right() -> None:
    flow = layer(*"xWby")
    flow.func("f").backprop = True
    net, data = computed(flow)
    back = net.cell("gradients/f").instance()
    back["gradients/f/primal"] = data
    back["gradients/f/d_y:0"] = np.ones((3, 7), "f4")
    back.compute()
    np.testing.assert_allclose(np.asarray(back["gradients/f/d_W"]), X.T @ (Y > 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(back["gradients/f/d_x"]), (Y > 0) @ W.T, rtol=1e-5, atol=1e-6)


def test_a_saved_flow_keeps_the_element_orders() -> None:
    raw = b"".join(encode(flow_file(layer(*"xWby"))))
    again = myelin.Flow()
    again.load(raw)
    assert again.vars["f/W"].col
    assert b"".join(encode(flow_file(again))) == raw
    _, data = computed(again)
    np.testing.assert_allclose(np.asarray(data["f/y:0"]), Y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("orders", list(product((False, True), repeat=3)), ids=lambda o: "".join("rc"[c] for c in o))
@pytest.mark.parametrize("rank", [2, 3])
def test_matrix_products_are_the_same_in_every_element_order(orders: tuple[bool, ...], rank: int) -> None:
    """A column-major product is also readable from outside, although it feeds another operation."""
    flow = myelin.Flow()
    f = flow.define("f")
    given: list[Array] = [RNG.standard_normal((2,) * (rank - 2) + size).astype("f4") for size in ((4, 6), (6, 5))]
    a, b = (f.var(name, shape=array.shape) for name, array in zip("ab", given, strict=True))
    c = f.matmul(a, b, name="c")
    f.neg(c, name="d")
    a.col, b.col, c.col = orders
    data = compiled(flow).cell("f").instance()
    data[a], data[b] = given
    data.compute()
    np.testing.assert_allclose(np.asarray(data["f/d"]), -(given[0] @ given[1]), rtol=1e-5, atol=1e-5)
    if c.col:
        np.testing.assert_allclose(np.asarray(data[c]), given[0] @ given[1], rtol=1e-5, atol=1e-5)
        assert np.asarray(data[c]).flags.f_contiguous


def test_contradictory_orders_and_ordered_references_are_rejected() -> None:
    flow = layer("W")
    flow.vars["f/W"].row = True
    with pytest.raises(ModelError, match="variable 'f/W' is requested to be both row-major and"):
        myelin.Compiler().compile(flow)
    flow = layer("x")
    flow.vars["f/x"].ref = True
    with pytest.raises(ModelError, match="variable 'f/x' is a reference and cannot be"):
        myelin.Compiler().compile(flow)
