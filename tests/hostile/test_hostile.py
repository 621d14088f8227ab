"""Small files that request a lot are answered quickly and in little memory, with a result or one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared_material import SHARED, needs_shared

from hostile.make import CLASSES, SIZES

SECONDS, MIB = 5.0, 1024
FOLDER = SHARED / "conformance" / "hostile"
SHARED_FILES = sorted(str(p) for p in FOLDER.glob("*")) if FOLDER.is_dir() else []
QUICK = (
    "flexible_options_medium",
    "one_name_large",
    "one_name_of_a_broken_tensor_medium",
    "same_operators_large",
    "same_subgraph_large",
    "same_strings_medium",
    "many_outputs_large",
    "dense_from_sparse_large",
    "call_chain_medium",
    "if_chain_medium",
    "if_tree_medium",
    "many_shapes_medium",
    "endless_loop_medium",
    "loops_in_loops_medium",
    "growing_loop_medium",
    "wide_graph_medium",
    "long_chain_medium",
    "declared_input_large",
    "intermediate_medium",
    "folded_fill_medium",
    "unknown_before_the_run_medium",
    "unknown_doubling_medium",
    "pooled_large",
    "products_medium",
    "empty_and_huge_medium",
    "convolved_medium",
    "convolved_with_one_filter_medium",
    "tiled_table_medium",
    "folded_window_large",
    "computed_window_medium",
    "frames_medium",
    "large_input_medium",
    "chained_models_large",
    "same_output_large",
    "same_large_model_medium",
)
ALL = [f"{name}_{size}" for name in CLASSES for size in SIZES]


def _answered(files: list[str], cache: Path) -> list[list[str]]:
    """The probe's line for each file; checks that it ended properly, in bounded memory and before the time limit."""
    done = subprocess.run(
        [sys.executable, "-m", "hostile.probe", *files],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},  # so that nothing compiled by an earlier run is found
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    lines = [line.split(" ", 5) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(lines) == len(files)
    wrong = [line for line in lines if line[1] not in ("result", "refused")]
    large = [line for line in lines if int(line[4]) > MIB]
    assert not wrong
    assert not large
    return lines


@pytest.mark.parametrize("part", range(4))
def test_a_sample_of_each_kind_ends_in_a_result_or_one_sentence(part: int, tmp_path: Path) -> None:
    assert set(QUICK) <= set(ALL)
    _answered(list(QUICK[part::4]), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_every_class_at_every_size_ends_in_a_result_or_one_sentence_quickly(name: str, tmp_path: Path) -> None:
    """On an otherwise idle processor: with a shared core, or on a slow machine, it takes twice as long or more."""
    lines = _answered([f"{name}_{size}" for size in SIZES], tmp_path)
    assert not [line for line in lines if float(line[3]) > SECONDS]


@needs_shared
def test_the_shared_files_end_in_a_result_or_one_sentence(tmp_path: Path) -> None:
    assert SHARED_FILES
    _answered(SHARED_FILES, tmp_path)
