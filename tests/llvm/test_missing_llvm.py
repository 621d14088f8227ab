"""If LLVM cannot be loaded, compiling for it fails with one sentence, and other backends still work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

PROBE = """
import importlib.abc, sys
import numpy as np

class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "llvmlite.binding":
            raise {failure}

sys.meta_path.insert(0, Broken())
import onert

package = onert.load(sys.argv[1])
for attempt in range(2):
    for compile in (
        lambda: onert.compile(package),
        lambda: onert.compile(package, backends=("llvm", "reference")),
        lambda: onert.bundle(package, sys.argv[2]),
        lambda: onert.Interpreter(sys.argv[1]).allocate_tensors(),
    ):
        try:
            compile()
        except onert.OnertError as error:
            print(error)
program = onert.compile(package, backends=("reference",))
onert.Execution(program).run([np.zeros((1, 8, 8, 1), np.float32)])
print("reference runs it")
"""


@pytest.mark.parametrize(
    "failure",
    [
        "OSError('Could not find/load shared object file libllvmlite.so')",
        "ImportError('no module')",
        "AttributeError('undefined symbol: LLVMPY_Create')",
        "RuntimeError('built for another version')",
    ],
)
def test_a_failure_to_load_llvm_is_reported(tmp_path: Path, failure: str) -> None:
    model = REPOSITORY / "nnpackage/examples/digits_float"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE.format(failure=failure), str(model), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    *sentences, last = done.stdout.splitlines()
    assert last == "reference runs it"
    assert len(sentences) == 8
    for sentence in sentences:
        assert sentence.startswith("backend 'llvm' cannot be used because LLVM cannot be loaded ")
        assert failure.partition("(")[0] in sentence
