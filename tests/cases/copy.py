"""Cases of Copy."""

from __future__ import annotations

import numpy as np

from onert.ir import Quantization
from onert.ir.ops.data_movement.copy import Copy

from .case import Case

_X = np.float32([[1.5, -0.0, np.inf], [2.0, -3.0, 0.25]])
_Q = Quantization((0.5,), (3,))

CASES: list[Case] = [
    Case("float", Copy(), (_X,), (_X.copy(),)),
    Case("scalar", Copy(), (np.float32(7).reshape(()),), (np.float32(7).reshape(()),)),
    Case("empty", Copy(), (np.zeros((0, 3), np.int64),), (np.zeros((0, 3), np.int64),)),
    Case("strings", Copy(), (np.array([b"a", b""], object),), (np.array([b"a", b""], object),)),
    Case(
        "quantized",
        Copy(),
        (np.int8([-128, 0, 127]),),
        (np.int8([-128, 0, 127]),),
        quantization=(_Q,),
        result_quantization=(_Q,),
    ),
]
