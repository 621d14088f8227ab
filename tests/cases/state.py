"""Cases of handles; tests of programs cover the variables they refer to."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert.ir.ops.control_flow.state import VarHandle

from .case import Case


def _handle(*parts: str) -> Array:
    handle = np.empty((), object)
    handle[()] = parts
    return handle


CASES = [Case("named", VarHandle("here", "counter"), (), (_handle("variable", "here", "counter"),))]
