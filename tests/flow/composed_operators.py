"""Cases from Myelin's own tests that combine operations or vary one: products, assignments, gathers, constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from flow.operators import FLOATS, NUMBERS, Operator
from onert.flow import Builder, Variable
from onert.frontend.flow.file import VariableFlag
from onert.ir import Array

WRAPPING = tuple(dtype for dtype in NUMBERS if dtype != "int8")
"""Element types of cases in Myelin's tests that overflow in 8 bits."""
ORDERS = (VariableFlag.ROW, VariableFlag.COL)


def _sizes(*sizes: int | None) -> Callable[[int], Sequence[int]]:
    """A function from the tested size to a shape that has it in place of each None."""
    return lambda n: [n if size is None else size for size in sizes]


def _products() -> list[Operator]:
    shapes = (_sizes(3, None), _sizes(None, 5), _sizes(1, 5))
    return [
        Operator(
            "matmul with a bias",
            lambda f, x, w, b: f.add(f.matmul(x, w), b),
            lambda x, w, b: x @ w + b,
            shapes,
            low=0.1,
        ),
        Operator(
            "matmul with a bias and a rectifier",
            lambda f, x, w, b: f.relu(f.sub(f.matmul(x, w), b)),
            lambda x, w, b: np.maximum(x @ w - b, 0),
            shapes,
            WRAPPING,
            low=0.1,
            atol=1e-4,
        ),
        *(_transposed("".join(c for c, on in zip("abc", chosen, strict=True) if on), *orders)
          for chosen in product((False, True), repeat=3) for orders in product(ORDERS, repeat=2)),
    ]  # fmt: skip


def _transposed(letters: str, first: VariableFlag, second: VariableFlag) -> Operator:
    """A matrix product with operands (a, b) or result (c) transposed as named, and an element order per operand."""

    def build(f: Builder, x: Variable, y: Variable) -> Variable:
        x.flags |= first
        y.flags |= second
        found = f.matmul(f.t(x) if "a" in letters else x, f.t(y) if "b" in letters else y)
        return f.t(found) if "c" in letters else found

    def meaning(x: Array, y: Array) -> Array:
        found = (x.T if "a" in letters else x) @ (y.T if "b" in letters else y)
        return found.T if "c" in letters else found

    shapes = (_sizes(*((7, None) if "a" in letters else (None, 7))), _sizes(*((5, 7) if "b" in letters else (7, 5))))
    name = f"matmul, {letters or 'nothing'} transposed, {first.name} and {second.name}"
    return Operator(name.replace(",", " ,"), build, meaning, shapes, low=0.1)


def _assigned() -> list[Operator]:
    def accumulated(f: Builder, c: Variable, a: Variable, b: Variable) -> Variable:
        f.assign(c, f.add(c, f.matmul(a, b)))
        return c

    def outer(f: Builder, c: Variable, row: Variable, other: Variable) -> Variable:
        f.assign(c, f.add(c, f.matmul(f.transpose(row), other)))
        return c

    def scattered(f: Builder, table: Variable, indices: Variable, rows: Variable) -> Variable:
        f.assign_add_scatter(table, indices, rows)
        return table

    def scatter_added(table: Array, indices: Array, rows: Array) -> Array:
        found = table.copy()
        np.add.at(found, indices[:, 0], rows)
        return found

    return [
        Operator(
            "assign of a product",
            accumulated,
            lambda c, a, b: c + a @ b,
            (_sizes(3, None), _sizes(3, 4), _sizes(4, None)),
            low=0.1,
        ),
        Operator(
            "assign of a product of rows",
            outer,
            lambda c, row, other: c + row.T @ other,
            (_sizes(None, 2), _sizes(1, None), _sizes(1, 2)),
            low=0.1,
        ),
        Operator(
            "assign_add_scatter",
            scattered,
            scatter_added,
            (_sizes(None, 3), _sizes(4, 1), _sizes(4, 3)),
            low=0.1,
            indices=1,
        ),
    ]


def _gathers() -> list[Operator]:
    def pooled(p: Array, i: Array) -> Array:
        return p[i[..., 0]].sum(1).astype(p.dtype)

    def batches(i: Array, v: Array) -> Array:
        found = np.zeros((64, 3), v.dtype)
        np.add.at(found, i[..., 0], v)
        return found

    def bags(i: Array, v: Array) -> Array:
        return batches(i, np.broadcast_to(v[:, None], (*i.shape[:2], 3)))

    return [
        Operator(
            "gather of two dimensions",
            Builder.gather,
            lambda p, i: p[i[:, 0], i[:, 1]],
            (_sizes(None, None, 3), _sizes(5, 2)),
            indices=1,
        ),
        Operator(
            "gather_sum in batches",
            lambda f, p, i: f.gather_sum(p, i, batch=1),
            pooled,
            (_sizes(None, 3), _sizes(2, 4, 1)),
            indices=1,
            low=0.1,
        ),
        Operator(
            "scatter in batches",
            lambda f, i, v: f.scatter(i, v, [64, 3], batch=1),
            batches,
            (_sizes(2, 4, 1), _sizes(2, 4, 3)),
            indices=0,
            low=0.1,
        ),
        Operator(
            "scatter of one for all of a batch",
            lambda f, i, v: f.scatter(i, v, [64, 3], batch=1, pooled=True),
            bags,
            (_sizes(2, 4, 1), _sizes(2, 3)),
            indices=0,
            low=0.1,
        ),
    ]


def _constants() -> list[Operator]:
    vector, matrix = (_sizes(None),), _sizes(3, None)
    return [
        Operator("sub of a negative", lambda f, x, y: f.sub(x, f.neg(y)), np.add, vector * 2),
        Operator("div by a constant", lambda f, x: f.div(x, 0.25), lambda x: x / 0.25, vector, FLOATS),
        Operator("div of 1", lambda f, x: f.div(1.0, x), lambda x: 1 / x, vector, FLOATS, 1, 10, 1e-3, 1e-4),
        Operator(
            "div of 1 by a root", lambda f, x: f.div(1.0, f.sqrt(x)), lambda x: 1 / np.sqrt(x), vector, FLOATS, 1, 10,
            1e-3, 1e-4,
        ),
        Operator("add of a column", Builder.add, np.add, (matrix, _sizes(3, 1))),
        Operator(
            "square of differences from a column",
            lambda f, x, y: f.square(f.sub(x, y)),
            lambda x, y: (x - y) ** 2,
            (matrix, _sizes(3, 1)),
            WRAPPING,
        ),
        *(_powered(exponent) for exponent in (0.0, 1.0, 2.0, 2.5, 3.0, -1.0, -2.0, 0.5, -0.5)),
        *(_with_number(name, number) for name in ("add", "sub", "mul") for number in (-1, 0, 1, 2, 3, 7, 8)),
        *(_with_number(name, number) for name in ("div", "mod") for number in (1, 2, 3, 4, 8, 64)),
    ]  # fmt: skip


def _powered(exponent: float) -> Operator:
    return Operator(
        f"pow to {exponent}",
        lambda f, x: f.pow(x, exponent),
        lambda x: np.power(x, x.dtype.type(exponent)),
        (_sizes(None),),
        FLOATS,
        0.01,
        10,
    )


def _with_number(name: str, number: int) -> Operator:
    functions: dict[str, Callable[[Array, Any], Any]] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": lambda x, y: x / y if x.dtype.kind == "f" else x // y,
        "mod": np.fmod,
    }
    return Operator(
        f"{name} with {number}",
        lambda f, x: getattr(f, name)(x, number),
        lambda x: functions[name](x, x.dtype.type(number)),
        (_sizes(None),),
        low=0,
        high=100,
        atol=1e-5 if name == "mod" else 1e-8,
    )


COMPOSED = (*_products(), *_assigned(), *_gathers(), *_constants())
