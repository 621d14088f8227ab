"""Flow operations match their definitions in NumPy on every backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import onert
from flow.meanings import FAMILIES, MEANINGS, Meaning, content, given
from onert.frontend.flow.table import TABLE


def check(meanings: Sequence[Meaning], backend: str) -> None:
    """Assert that a flow of these operations computes the expected results."""
    program = onert.compile(onert.load(content(meanings)), backends=(backend, "builtin"), num_threads=1)
    results = onert.Execution(program).run(given(meanings))
    expected = {f"{at}/y{i}": (m, y) for at, m in enumerate(meanings) for i, y in enumerate(m.expected)}
    assert results.keys() == expected.keys()
    for name, (meaning, expected_result) in expected.items():
        found = results[name]
        assert (found.dtype, found.shape) == (expected_result.dtype, expected_result.shape), meaning
        np.testing.assert_allclose(found, expected_result, meaning.tolerance, meaning.tolerance, err_msg=str(meaning))


@pytest.mark.parametrize("meaning", MEANINGS, ids=str)
def test_an_operation_matches_numpy_on_the_reference_backend(meaning: Meaning) -> None:
    check([meaning], "reference")


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_match_numpy_in_native_code(family: str) -> None:
    check(FAMILIES[family], "llvm")


def test_every_operation_in_the_table_has_a_test_case() -> None:
    in_recipes_only = {t for t in TABLE if t.startswith(("MulAdd", "MulSub"))}
    assert {m.type for m in MEANINGS} | {"Id", "Cast"} | in_recipes_only >= TABLE.keys()
