"""Every malformed model is refused in one clear sentence, quickly, in little memory and by the listed stage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
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
import json
import os
import sys
import numpy as np
import onert

def tried(path):
    stage = "load"
    try:
        package = onert.load(path)
        stage = "compile"
        program = onert.compile(package, num_threads=1)
        stage = "run"
        execution = onert.Execution(program)
        execution.run([np.zeros([d or 1 for d in i.shape], i.dtype.numpy) for i in program.inputs])
    except onert.OnertError as error:
        print(json.dumps([path, stage, peak(), str(error)]), flush=True)

for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        tried(path)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(json.dumps([path, "", 0, "the process ended"]), flush=True)
"""
)
"""Tries each model in a child process, forked from one that has already imported everything they share."""


@needs_shared
def test_malformed_models_are_refused(subtests: pytest.Subtests) -> None:
    paths = [str(FOLDER / f"{case['name']}.tflite") for case in CASES]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *paths], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    answers = {Path(path).stem: answer for path, *answer in map(json.loads, done.stdout.splitlines())}
    for case in CASES:
        with subtests.test(case["name"]):
            assert case["name"] in answers, "the model was accepted and run"
            stage, peak_kib, sentence = answers[case["name"]]
            assert stage, f"{sentence}: {done.stderr}"
            assert STAGES.index(stage) <= STAGES.index(case["refuse_by"]), sentence
            assert sentence.strip()
            assert "\n" not in sentence
            assert peak_kib < 1 << 20, f"{peak_kib} KiB"
