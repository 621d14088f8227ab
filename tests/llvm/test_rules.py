"""The tables of rules: named functions exist, and rules that a model does not need are not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared_material import REPOSITORY

from onert.ir import OPS
from onert_llvm.lower.rule import Named, Rule
from onert_llvm.rules import float_rules, integer_rules
from onert_llvm.rules import lazy_rules as rare_rules

RARE = [found for kind in OPS.values() for found in rare_rules.rules(kind, *3 * (lambda *given: None,))]
TABLES = [
    *float_rules.FLOATS.values(),
    *float_rules.ANY.values(),
    float_rules.ELEMENT_WISE,
    *integer_rules.BYTES.values(),
    *integer_rules._DYNAMIC.values(),
    *integer_rules._IMAGES.values(),
    *integer_rules._TABLES,
    *(found for each in integer_rules.SHORTS.values() for found in each),
    integer_rules._MATRICES,
    integer_rules._PART,
    *RARE,
]
NAMED = sorted({f for found in TABLES for f in (found.why_not, found.lower) if isinstance(f, Named)}, key=str)


@pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named.module}.{named.name}")
def test_every_function_named_by_a_rule_exists(named: Named) -> None:
    assert callable(named.function)
    assert named.function.__module__.startswith("onert_llvm.lower")


def test_an_operation_kind_has_rules_in_at_most_one_table() -> None:
    rare = {kind for kind in OPS.values() if rare_rules.rules(kind, *3 * (lambda *given: None,))}
    assert rare
    assert rare.isdisjoint(float_rules.COMMON)
    assert all(isinstance(found, Rule) for found in RARE)


READ = """
import sys
import onert
onert.compile(onert.load(sys.argv[1]))
print(*sorted(name for name in sys.modules if name.startswith("onert_llvm")))
"""


def test_a_float_model_imports_no_rules_for_integers_or_recurrent_layers(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", READ, str(REPOSITORY / "nnpackage" / "examples" / "digits_float")],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "ONERT_CACHE_DIR": str(tmp_path)},
    ).stdout.split()
    assert "onert_llvm.kernels.contraction.float_terms" in said
    unwanted = ("lower.contraction.int", "lower.elementwise.int", "lstm", "lazy_rules", "aot", "detection", "rfft")
    assert [name for name in said if any(part in name for part in unwanted)] == []
