"""The builder's interface: every operation of Myelin's builder, with the same arguments and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.flow import Variable
from onert.flow.files import flow_file
from onert.frontend.flow.file import encode
from onert.ir import Array, ExecutionError, ModelError

ONE = "x, name=None"
TWO = "x, y, name=None"
REDUCED = "x, axis=None, keepdims=None, name=None"
ALONG = "x, axis=None, name=None"
EXTREME = "x, axis=None, ouput_value=False, name=None"
POOLED = "params, indices, batch=None, name=None"
_OF_ONE = (
    "log exp erf sigmoid relu gelu sin cos tan cot sec csc asin acos atan acot asec acsc sinh cosh tanh coth sech "
    "csch asinh acosh atanh acoth asech acsch square sqrt rsqrt neg abs sign floor ceil round trunc identity "
    "softsign softplus shape size rank"
)
_OF_TWO = ("add", "sub", "mul", "div", "mod", "minimum", "maximum", "pow", "assign", "equal", "less", "greater")
_ALONG = {"softmax": "SoftMax", "log_softmax": "LogSoftMax", "squeeze": "Squeeze"}
_WITHOUT = {
    "var": "name, dtype='float32', shape=()",
    "const": "value, dtype=None, shape=None, name=None",
    "array": "name, value",
    "rename": "var, new_suffix",
    "cnx": "name, args",
    "opname": "optype",
    "varname": "var",
    "parameter": "name, dtype='float32', shape=(), value=None",
    **dict.fromkeys(("random_uniform", "random_normal", "random_ortho"), "var"),
}
"""Methods that add no operation."""
OPERATIONS: Mapping[str, tuple[str, str]] = {
    **{name: (ONE, name.capitalize()) for name in _OF_ONE.split()},
    "rcp": (ONE, "Reciprocal"),
    "logical_not": (ONE, "Not"),
    **{name: (TWO, name.capitalize()) for name in _OF_TWO},
    **{f"{name}_equal": (TWO, f"{name.capitalize()}Equal") for name in ("not", "less", "greater")},
    **{f"logical_{name}": (TWO, name.capitalize()) for name in ("and", "or", "xor")},
    "cond": ("c, x, y, name=None", "Cond"),
    "select": ("c, x, name=None", "Select"),
    "cast": ("x, dtype, name=None", "CastFloat"),
    "matmul": (TWO, "MatMul"),
    **dict.fromkeys(("t", "transpose"), ("x, perm=None, name=None", "Transpose")),
    **{name: ("x, shape, name=None", name.capitalize()) for name in ("reshape", "resize", "broadcast")},
    "concat": ("args, name=None, axis=1", "Concat"),
    "split": ("x, splits, axis=0, name=None", "Split"),
    **{name: (REDUCED, name.capitalize()) for name in ("sum", "product", "min", "max", "all", "any")},
    "count": ("p, axis=None, dtype='float32', name=None", "Count"),
    "mean": (REDUCED, "Sum Div"),
    "variance": (REDUCED, "Sum Div Sub Square Sum Div"),
    "norm": (ONE, "Square Sum Sqrt"),
    "normalize": (ONE, "Square Sum Sqrt Reciprocal Mul"),
    "logsumexp": (REDUCED, "LogSumExp"),
    **{f"arg{name}": (EXTREME, f"Arg{name.capitalize()}") for name in ("min", "max")},
    "gather": ("params, indices, oov=None, name=None", "Gather"),
    **{f"gather_{name}": (POOLED, f"Gather{name.capitalize()}") for name in ("sum", "max", "avg")},
    "scatter": ("indices, value, shape, batch=None, pooled=False, name=None", "Scatter"),
    "assign_add_scatter": (
        "var, indices, value, ref=False, batch=None, pooled=False, name=None",
        "AssignAddScatter",
    ),
    "onehot": ("index, depth, value=None, name=None", "OneHot"),
    **{name: (parameters, "") for name, parameters in _WITHOUT.items()},
    "ref": ("instance, var, name=None", "Reference"),
    "rawop": ("optype, name=None", "Raw"),
    "op": ("optype, args, name=None", "Raw"),
    # In Myelin's C++ builder, but not in its Python builder.
    "clip": ("x, low, high, name=None", "Maximum Minimum"),
    "slice": ("x, begin, size, name=None", "Slice"),
    **{name: (ALONG, kind) for name, kind in _ALONG.items()},
    "expand_dims": ("x, axis, name=None", "ExpandDims"),
    "logsigmoid": (ONE, "LogSigmoid"),
    "logical_and_not": (TWO, "AndNot"),
    "dot_product": (TWO, "Mul Sum"),
    "cos_sim": (TWO, "Mul Sum Square Sum Sqrt Square Sum Sqrt Mul Div"),
}
"""Methods by name: their parameters with defaults, and the types of the operations that they add."""
_OWN = {"begun", "broadcasting", "made", "pooling_gather", "reduce", "result", "value"}
"""Helper methods for adding operations, which Myelin does not have."""


def _arguments(f: myelin.Builder) -> Mapping[str, Any]:
    """A value for each parameter without a default."""
    x, y = f.var("x", shape=[1, 3]), f.var("y", shape=[1, 3])
    return {
        "x": x,
        "y": y,
        "c": x,
        "p": x,
        "params": x,
        "args": [x, y],
        "var": f.parameter("w", shape=[2, 3]),
        "indices": f.var("i", "int32", [1, 1]),
        "index": f.var("j", "int32", [2]),
        "value": f.var("v", shape=[1, 3]),
        "shape": [3, 1],
        "begin": [0, 0],
        "size": [1, 2],
        "low": 0,
        "high": 1,
        "axis": 0,
        "depth": 4,
        "splits": 1,
        "dtype": "int32",
        "instance": f.var("other", "resource"),
        "name": "named",
        "optype": "Raw",
        "new_suffix": "renamed",
    }


@pytest.mark.parametrize("method", OPERATIONS)
def test_a_method_has_myelin_s_parameters_and_adds_its_operations(method: str) -> None:
    expected, types = OPERATIONS[method]
    parameters = list(inspect.signature(getattr(myelin.Builder, method)).parameters.values())[1:]
    found = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    assert ", ".join(found) == expected
    flow = myelin.Flow()
    f = flow.define("f")
    given = _arguments(f)
    if method == "matmul":
        given = {**given, "y": f.var("z", shape=[3, 2])}
    if method in ("const", "array"):
        given = {**given, "value": [1.0, 2.0]}
    if method in ("scatter", "resize", "broadcast"):
        given = {**given, "shape": [2, 3]}
    needed = [given[p.name] for p in parameters if p.default is p.empty]
    getattr(f, method)(*needed)
    assert " ".join(operation.type for operation in flow.ops.values()) == types


def test_every_public_method_is_in_the_table() -> None:
    assert {name for name in dir(myelin.Builder) if not name.startswith("_")} == OPERATIONS.keys() | _OWN


@pytest.mark.parametrize("method", ["add", "cond", "select"])
def test_a_rejected_operation_leaves_the_flow_unchanged(method: str) -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    x, y = f.var("x", shape=[2, 3]), f.var("y", shape=[4])
    with pytest.raises(ModelError, match=r"given shapes \[2, 3\] and .*\[4\], which do not broadcast"):
        getattr(f, method)(*(x, x, y)[3 - (3 if method == "cond" else 2) :])
    assert (flow.ops, f.func.ops, x.consumers, y.consumers) == ({}, [], [], [])  # type: ignore[union-attr]
    f.neg(x)
    assert compiled(flow).cell("f").instance().compute() is None


# ---- random numbers


def _network(*names: str, dtype: str = "float32") -> tuple[myelin.Network, Mapping[str, Variable]]:
    """A network whose learnable variables are named after their initial distributions."""
    flow = myelin.Flow()
    f = flow.define("f")
    shapes = {"uniform": [40, 50], "normal": [50, 40], "ortho": [4, 3, 2], "tall": [9, 4], "zeros": [3]}
    found = {name: f.parameter(name, dtype, shapes[name]) for name in names}
    for name, variable in found.items():
        if name != "zeros":
            assert getattr(f, f"random_{'ortho' if name == 'tall' else name}")(variable) is variable
        f.sum(variable)
    return compiled(flow), found


def _elements(net: myelin.Network, variable: Variable) -> Array:
    return np.array(net.tensor(variable))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_variables_are_initialised_from_their_distribution(dtype: str) -> None:
    net, variables = _network("uniform", "normal", "ortho", "tall", "zeros", dtype=dtype)
    assert not any(_elements(net, v).any() for v in variables.values())
    net.init_model_parameters(5)
    found = {name: _elements(net, v) for name, v in variables.items()}
    assert {a.dtype.name for a in found.values()} == {dtype}
    even = found["uniform"] * np.sqrt(2000)
    assert -1 <= even.min() < -0.99 < 0.99 < even.max() < 1
    assert abs(even.mean()) < 0.05
    bell = found["normal"] * np.sqrt(2000)
    assert abs(bell.std() - 1) < 0.05 > abs(bell.mean())
    rows, columns = found["ortho"].reshape(4, 6), found["tall"]
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(columns.T @ columns, np.eye(4), atol=1e-6)
    assert not found["zeros"].any()


def test_random_numbers_depend_only_on_the_seed_and_the_variable_s_name() -> None:
    """They do not depend on other variables or on earlier draws."""
    net, variables = _network("uniform", "normal")
    other, others = _network("normal")
    net.init_model_parameters()
    first = _elements(net, variables["normal"])
    net.init_model_parameters(1)
    second = _elements(net, variables["normal"])
    assert (first != second).all()
    other.init_model_parameters(1)
    np.testing.assert_array_equal(_elements(other, others["normal"]), second)
    net.init_model_parameters(0)
    np.testing.assert_array_equal(_elements(net, variables["normal"]), first)
    np.testing.assert_allclose(first[0, :2], [-0.03726542, 0.00882894], rtol=1e-5)  # in every version


def test_a_saved_flow_keeps_the_initial_distributions_of_its_variables() -> None:
    flow, again = myelin.Flow(), myelin.Flow()
    f = flow.define("f")
    w = f.random_normal(f.parameter("w", shape=[8]))
    f.neg(w)
    again.load(_saved(flow))
    nets = [compiled(each) for each in (flow, again)]
    for net in nets:
        net.init_model_parameters(3)
    assert list(nets[0][w]) == list(nets[1]["f/w"])


def _saved(flow: myelin.Flow) -> bytes:
    return b"".join(encode(flow_file(flow)))


def test_variables_that_cannot_be_random_are_rejected() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    for variable in (f.var("x", shape=[2]), f.parameter("n", "int32", [2]), f.parameter("open", shape=[-1])):
        with pytest.raises(ModelError, match=f"'{variable.name}' .* cannot be random, expected a learnable variable"):
            f.random_uniform(variable)
    w = f.parameter("w", shape=[2])
    f.neg(w)
    w.add_attr("init", "gamma")
    net = compiled(flow)
    with pytest.raises(ExecutionError, match="'f/w' has unknown initial distribution 'gamma', expected one of uniform"):
        net.init_model_parameters()
