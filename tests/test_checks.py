"""A test that checks nothing fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shared_material import REPOSITORY

PASSING = """
import numpy as np
import pytest
from onert.backend.testing import TRIALS, align
from onert.backend.registry import load_backend

def test_an_assertion():
    assert [1, 2] == [1, 2]

def test_an_assertion_in_a_loop():
    for i in range(3):
        assert i < 3

def test_a_comparison_of_arrays():
    np.testing.assert_array_equal(np.zeros(3), 0)

def test_an_exception():
    with pytest.raises(ZeroDivisionError):
        1 / 0

def test_a_trial_of_the_kit():
    align(load_backend("reference"), TRIALS[0])

def test_skipped():
    pytest.skip("not here")
"""
FAILING = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_that_returns_early(n):
    if n != 2:
        return
    assert n == 2

def test_whose_loop_is_empty():
    for i in ():
        assert i

def test_that_only_runs():
    sum(range(3))
"""


@pytest.mark.parametrize(
    ("code", "summary"), [(PASSING, "5 passed, 1 skipped"), (FAILING, "3 failed, 1 passed")], ids=["checks", "none"]
)
def test_a_test_without_a_check_fails(tmp_path: Path, code: str, summary: str) -> None:
    (tmp_path / "test_made.py").write_text(code)
    shutil.copy(REPOSITORY / "tests" / "conftest.py", tmp_path)
    options = ["-rN", "-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert summary in done.stdout.splitlines()[-1], done.stdout
    assert done.stdout.count("the test passed without a single check") == summary.count("failed") * 3
