"""Claims about the operations of flows: each means what NumPy says, whichever backend runs it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import onert
from flow.meanings import FAMILIES, MEANINGS, Meaning, content, given
from onert.frontend.flow.table import TABLE


def check(meanings: Sequence[Meaning], backend: str) -> None:
    """The results of a flow of these operations are what NumPy says."""
    program = onert.compile(onert.load(content(meanings)), backends=(backend, "builtin"), num_threads=1)
    results = onert.Execution(program).run(given(meanings))
    expected = {f"{at}/y{i}": (m, y) for at, m in enumerate(meanings) for i, y in enumerate(m.expected)}
    assert results.keys() == expected.keys()
    for name, (meaning, wanted) in expected.items():
        found = results[name]
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), meaning
        np.testing.assert_allclose(found, wanted, meaning.tolerance, meaning.tolerance, err_msg=str(meaning))


@pytest.mark.parametrize("meaning", MEANINGS, ids=str)
def test_an_operation_means_what_numpy_says(meaning: Meaning) -> None:
    check([meaning], "reference")


@pytest.mark.parametrize("family", FAMILIES)
def test_native_code_computes_what_operations_mean(family: str) -> None:
    check(FAMILIES[family], "llvm")


def test_every_operation_of_the_table_is_tried() -> None:
    in_recipes_only = {t for t in TABLE if t.startswith(("MulAdd", "MulSub"))}
    assert {m.type for m in MEANINGS} | {"Id", "Cast"} | in_recipes_only >= TABLE.keys()
