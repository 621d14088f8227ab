"""The seeds of the fuzz tests."""

from __future__ import annotations

import os
from typing import Any

import pytest


def batches(size: int, few: int, many: int) -> list[Any]:
    """The first seeds of batches of mutants; those after the first `few` mutants belong to the long suite.

    Each finding names its own seed, which alone reproduces it.
    """
    start = int(os.environ.get("ONERT_FUZZ_SEED", "0"))
    later = (pytest.param(first, marks=pytest.mark.long) for first in range(start + few, start + many, size))
    return [*range(start, start + few, size), *later]
