"""Cases of handles; what they lead to is shown by programs."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert.ir.ops.control_flow.state import VarHandle

from .case import Case


def _handle(*parts: str) -> Array:
    made = np.empty((), object)
    made[()] = parts
    return made


CASES = [Case("named", VarHandle("here", "counter"), (), (_handle("variable", "here", "counter"),))]
