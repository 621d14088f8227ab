"""Cases of Permute."""

from __future__ import annotations

import numpy as np

from onert.ir.ops.data_movement.permute import Permute

from .case import Case

_X = np.int32([[1, -2], [3, 4]])

CASES: list[Case] = [
    Case("within the host", Permute(), (_X,), (_X.copy(),)),
    Case("to a device", Permute(target="device"), (_X.astype(np.float32),), (_X.astype(np.float32),)),
]
