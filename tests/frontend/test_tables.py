"""The frontend's tables: the generated schema matches `circle-schema`, and every operator is in exactly one family."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onert.frontend.flatbuffer import budget
from onert.frontend.tflite_schema import schema_listing
from onert.frontend.tflite_schema.external_models import ExternalModels
from onert.frontend.tflite_schema.schema import Field, layout
from onert.frontend.tflite_schema.table import CUSTOM, FAMILIES, TABLE, importer
from onert.frontend.tflite_schema.table.builtins import BUILTINS
from onert.ir import DType, ModelError, RuleError, Subgraphs, TensorType


def test_the_generated_schema_tables_match_circle_schema() -> None:
    file = Path(schema_listing.__file__).with_name("schema_tables.py")
    assert file.read_text(encoding="utf-8") == schema_listing.listing()


def test_every_table_file_is_a_registered_family() -> None:
    here = Path(importer.__file__).parent
    files = {".".join(path.relative_to(here).with_suffix("").parts) for path in here.rglob("[!_]*.py")}
    assert files - {"importer", "builtins"} == set(FAMILIES)


@pytest.mark.parametrize("table", ["TABLE", "CUSTOM"])
def test_an_operator_is_in_one_family_only(table: str) -> None:
    counts = Counter(
        name
        for family in FAMILIES
        for name in getattr(importlib.import_module(f"onert.frontend.tflite_schema.table.{family}"), table)
    )
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_tables_contain_all_families() -> None:
    assert TABLE["STABLEHLO_SORT"] is dict(TABLE)["STABLEHLO_SORT"]
    assert len(TABLE) == len(dict(TABLE))
    assert {"Mfcc", "TFLite_Detection_PostProcess"} <= set(CUSTOM)
    assert "NOTHING" not in TABLE


def test_unused_families_are_not_imported() -> None:
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


class _Fields(dict[str, Field]):
    """Fields that record the names looked up in vain."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        super().__init__(fields)
        self.others: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.others |= {name} - self.keys()
        return super().get(name, default)


_WITHOUT_FIELD = {
    "counts_margins": {"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"},
    "pot_scale_int16": {"MUL", "DIV"},
    "refusable": {"IF"},
    "replaces": {"STABLEHLO_SCATTER"},
    "time_major": {"LSTM", "RNN"},
}
"""Attributes that files do not store for these operators, which then have the default value."""


@pytest.mark.parametrize("name", sorted(set(TABLE) - {"RUN_MODEL"}))
def test_an_operator_reads_only_fields_of_the_schema(name: str) -> None:
    fields = _Fields(layout(BUILTINS[name].options))
    type_ = TensorType(DType.FLOAT32, (1, 4, 4, 2))
    external = ExternalModels(None, lambda data, external_models: Subgraphs(()))
    ends = (type_, type_)
    operator = importer.Operator(name, 1, ends, ends, b"", 0, budget(0), external, None, fields, ())
    with contextlib.suppress(ModelError, RuleError):  # zeros, as fields are that no file has, are no good for some
        TABLE[name](operator)
    assert fields.others == {other for other, names in _WITHOUT_FIELD.items() if name in names}
