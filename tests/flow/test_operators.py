"""The builder's operations match NumPy for every size and element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from flow.composed_operators import COMPOSED
from flow.operators import NUMBERS, OPERATORS, SIZES, Operator, inputs, is_alike
from onert.ir import Array


def computed(cases: Sequence[tuple[Operator, int]], dtype: str) -> list[tuple[tuple[Array, ...], tuple[Array, ...]]]:
    """The results of all cases, compiled as one function, each with the results of NumPy."""
    flow = myelin.Flow()
    f = flow.define("f")
    given: list[tuple[myelin.Variable, Array]] = []
    results: list[tuple[myelin.Variable, ...]] = []
    expected = []
    for at, (operator, size) in enumerate(cases):
        arrays = inputs(operator, size, dtype)
        variables = [f.var(f"{at}/{i}", array.dtype.name, array.shape) for i, array in enumerate(arrays)]
        made = operator.build(f, *variables)
        results.append(made if isinstance(made, tuple) else (made,))
        given += zip(variables, arrays, strict=True)
        with np.errstate(all="ignore"):
            meant = operator.meaning(*arrays)
        expected.append(meant if isinstance(meant, tuple) else (meant,))
    data = compiled(flow).cell("f").instance()
    for variable, array in given:
        data[variable] = array if array.size != 1 else array.reshape(-1)[0]
    data.compute()
    found = [tuple(np.array(data.tensor(v)) for v in variables) for variables in results]
    return list(zip(found, expected, strict=True))


CHUNK = 12
"""Operators per function: enough to save compilations, few enough to see which one fails."""


def chunks(dtypes: Sequence[str]) -> list[Any]:
    """The operators that support each element type, in chunks."""
    found = []
    for dtype in dtypes:
        operators = [operator for operator in (*OPERATORS, *COMPOSED) if dtype in operator.dtypes]
        for at in range(0, len(operators), CHUNK):
            chunk = operators[at : at + CHUNK]
            found.append(pytest.param(chunk, dtype, id=f"{dtype}, {chunk[0]} to {chunk[-1]}"))
    return found


def check(operators: Sequence[Operator], sizes: Sequence[int], dtype: str) -> None:
    cases = [(operator, size) for operator in operators for size in sizes]
    for (operator, size), (found, expected) in zip(cases, computed(cases, dtype), strict=True):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.shape == np.shape(theirs), f"{operator} of size {size}"
            assert is_alike(mine, theirs, operator), f"{operator} of size {size}: {mine} is not {theirs}"


@pytest.mark.parametrize(("operators", "dtype"), chunks(("float32", "int16")))
def test_builder_operations_match_numpy(operators: Sequence[Operator], dtype: str) -> None:
    check(operators, (5, 16), dtype)


@pytest.mark.long
@pytest.mark.parametrize(("operators", "dtype"), chunks(NUMBERS))
def test_builder_operations_match_numpy_for_every_size_and_type(operators: Sequence[Operator], dtype: str) -> None:
    check(operators, SIZES, dtype)


def test_every_builder_method_that_adds_an_operation_is_tested() -> None:
    tried = {operator.name.split(" ")[0] for operator in (*OPERATORS, *COMPOSED)}
    core = {"var", "rename", "cnx", "const", "array", "opname", "varname", "rawop", "op", "value", "result", "made"}
    core |= {
        "begun",
        "broadcasting",
        "reduce",
        "pooling_gather",
        "parameter",
        "ref",
        "random_uniform",
        "random_normal",
        "random_ortho",
    }
    methods = {name for name in dir(myelin.Builder) if not name.startswith("_")}
    assert methods - core == tried
