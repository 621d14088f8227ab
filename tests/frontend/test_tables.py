"""What the frontend's tables hold: the schema as the package `circle-schema` says it, every operator once."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from onert.frontend.tflite_schema import schema_listing
from onert.frontend.tflite_schema.table import CUSTOM, FAMILIES, TABLE, importer


def test_the_listing_is_what_circle_schema_says() -> None:
    file = Path(schema_listing.__file__).with_name("schema_tables.py")
    assert file.read_text(encoding="utf-8") == schema_listing.listing()


def test_every_table_is_of_a_family() -> None:
    here = Path(importer.__file__).parent
    files = {".".join(path.relative_to(here).with_suffix("").parts) for path in here.rglob("[!_]*.py")}
    assert files - {"importer", "builtins"} == set(FAMILIES)


@pytest.mark.parametrize("table", ["TABLE", "CUSTOM"])
def test_an_operator_is_in_one_family(table: str) -> None:
    counts = Counter(
        name
        for family in FAMILIES
        for name in getattr(importlib.import_module(f"onert.frontend.tflite_schema.table.{family}"), table)
    )
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_tables_hold_all_families() -> None:
    assert TABLE["STABLEHLO_SORT"] is dict(TABLE)["STABLEHLO_SORT"]
    assert len(TABLE) == len(dict(TABLE))
    assert {"Mfcc", "TFLite_Detection_PostProcess"} <= set(CUSTOM)
    assert "NOTHING" not in TABLE


def test_families_that_no_one_asks_for_are_not_read() -> None:
    code = """
import sys
from onert.frontend.tflite_schema.table import TABLE
TABLE["CONV_2D"]
assert "onert.ir.ops.contraction.conv" in sys.modules
assert not any(name.startswith(("onert.ir.ops.stablehlo", "onert.ir.ops.recurrent.lstm")) for name in sys.modules)
from onert.ir import OPS
assert OPS["LSTM"].__module__ == "onert.ir.ops.recurrent.lstm"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
