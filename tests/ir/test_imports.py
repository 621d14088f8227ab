"""Claims about modules that are imported by name."""

from __future__ import annotations

import subprocess
import sys

BEGUN = """
import sys
from threading import stack_size
from time import monotonic, sleep
from onert.ir.process import imports
imports.begin("onert.frontend.tnn.structure")
imports.begin("onert.no_such_module")
imports.begin("mailbox")
print(imports.module("onert.frontend.tnn.structure") is sys.modules["onert.frontend.tnn.structure"])
print("mailbox" in sys.modules)
stack_size(1 << 45)  # of which the system has none for a thread
imports.begin("onert.frontend.tnn.weights")
print(imports.module("onert.frontend.tnn.weights").__name__)
try:
    imports.module("onert.no_such_module")
except ModuleNotFoundError as error:
    print(error)
"""


def test_what_is_begun_is_there_or_wrong_when_somebody_asks_for_it() -> None:
    """Strangers' modules are not begun: those may need the main thread."""
    said = subprocess.run([sys.executable, "-c", BEGUN], check=True, capture_output=True, text=True)
    assert said.stdout.splitlines() == [
        "True",
        "False",
        "onert.frontend.tnn.weights",
        "No module named 'onert.no_such_module'",
    ]
    assert said.stderr == ""
