"""Modules imported in advance by name."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from threading import stack_size
from time import monotonic, sleep
from onert.ir.process import imports
imports.begin("onert.frontend.tnn.structure")
imports.begin("onert.no_such_module")
imports.begin("mailbox")
print(imports.module("onert.frontend.tnn.structure") is sys.modules["onert.frontend.tnn.structure"])
print("mailbox" in sys.modules)
stack_size(1 << 45)  # more than any thread can have
imports.begin("onert.frontend.tnn.weights")
print(imports.module("onert.frontend.tnn.weights").__name__)
try:
    imports.module("onert.no_such_module")
except ModuleNotFoundError as error:
    print(error)
"""


def test_modules_begun_in_advance_are_available_or_fail_when_requested() -> None:
    """Modules of other packages are not imported in advance: they may need the main thread."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "True",
        "False",
        "onert.frontend.tnn.weights",
        "No module named 'onert.no_such_module'",
    ]
    assert done.stderr == ""
