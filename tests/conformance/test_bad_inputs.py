"""Every malformed model is refused with one clear sentence, in time, in little memory, and never later than it must."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from patience import PATIENCE
from resident import SOURCE
from shared_material import SHARED, needs_shared

FOLDER = SHARED / "conformance" / "bad_inputs"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text()) if SHARED.is_dir() else []
STAGES = ["load", "compile", "run"]

PROBE = (
    SOURCE
    + """
import sys
import numpy as np
import onert
stage = "load"
try:
    package = onert.load(sys.argv[1])
    stage = "compile"
    program = onert.compile(package, num_threads=1)
    stage = "run"
    execution = onert.Execution(program)
    execution.run([np.zeros([d or 1 for d in i.shape], i.dtype.numpy) for i in program.inputs])
except onert.OnertError as error:
    assert "\\n" not in str(error), "the sentence has one line"
    assert str(error).strip(), "the sentence says something"
    print(stage, peak(), error)
"""
)


@needs_shared
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_malformed_models_are_refused(case: dict[str, Any]) -> None:
    path = FOLDER / f"{case['name']}.tflite"
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "the model was accepted and run"
    stage, peak_kib, _ = done.stdout.split(" ", 2)
    assert STAGES.index(stage) <= STAGES.index(case["refuse_by"]), done.stdout
    assert int(peak_kib) < 1 << 20, f"{peak_kib} KiB"
