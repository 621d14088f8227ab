"""The location of the shared models, data and conformance cases, and the skip marker for when they are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("ONERT_SHARED", REPOSITORY.parent / "shared"))

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared models and cases are not beside this checkout (see ONERT_SHARED)"
)
