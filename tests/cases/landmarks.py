"""Cases of regions given by landmarks, of warped images, and of operations that verify others."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.elementwise.broadcast_gradient import BroadcastGradientArgs
from onert.ir.ops.reduction.unpool import MaxPoolWithIndices
from onert.ir.ops.vision_audio.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor

from .case import Case

_SHIFT = np.float32([[[1, 0, 0, 1], [0, 1, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]])
_IMAGE = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]).reshape(1, 3, 3, 1)
_TURNED = floats((2, 4, 4)) * np.float32(1.5)
_NOWHERE = floats((3, 4, 4))
_NOWHERE[0, 0, 3], _NOWHERE[1, 1, 3], _NOWHERE[2, 0, 3] = np.nan, np.inf, -1e12
_FLOW = floats((2, 5, 6, 2)) * np.float32(4)
_FLOW[0, 0, 0], _FLOW[0, 0, 1], _FLOW[1, 2, 2] = [np.nan, 0], [np.inf, -np.inf], [1e20, -1e20]

CASES = [
    Case(
        "largest elements and where they stand",
        MaxPoolWithIndices(2, 2, Padding.VALID, 1, 1),
        (np.concatenate([_IMAGE, -_IMAGE]),),
        (
            np.float32([5, 6, 8, 9, -1, -2, -4, -5]).reshape(2, 2, 2, 1),
            np.int32([4, 5, 7, 8, 0, 1, 3, 4]).reshape(2, 2, 2, 1),
        ),
    ),
    Case(
        "a region that is not turned",
        LandmarksToMatrix(0, 1, (0, 1, 2), 4, 2),
        (np.float32([[[0, 0, 9], [8, 0, 9], [8, 4, 9]]]),),
        # 8 by 4 mapped onto 4 by 2: both steps are 2, starting at the region's corner
        (np.float32([[[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]),),
    ),
    Case(
        "a region turned by a quarter",
        LandmarksToMatrix(0, 1, (0, 1, 2), 4, 2),
        (np.float32([[[0, 0], [0, 8], [-4, 8]]]),),
        (np.float32([[[0, -2, 0, 0], [2, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]),),
    ),
    Case(
        "regions turned by anything, of two images",
        LandmarksToMatrix(2, 4, (1, 3, 5, 0), 6, 3, 1.5, 0.75),
        (floats((2, 6, 3)),),
    ),
    Case("many points", TransformLandmarks(), (floats((2, 5, 2)), floats((2, 4, 4)))),
    Case("features turned by anything", TransformTensor(5, 4), (floats((2, 6, 7, 3)), _TURNED)),
    Case("features at places that are none", TransformTensor(2, 3), (floats((3, 4, 5, 2)), _NOWHERE)),
    Case("an image taken from far around", DenseImageWarp(), (floats((2, 5, 6, 3)), _FLOW)),
    Case("points", TransformLandmarks(), (np.float32([[[1, 2, 7]]]), _SHIFT), (np.float32([[[2, 2.5, 7]]]),)),
    Case(
        "features between rows, 0 outside",
        TransformTensor(2, 2),
        (_IMAGE, _SHIFT),
        (np.float32([[3.5, 4.5], [6.5, 7.5]]).reshape(1, 2, 2, 1),),
    ),
    Case(
        "an image taken from half a place to the left",
        DenseImageWarp(),
        (_IMAGE, np.broadcast_to(np.float32([0, 0.5]), (1, 3, 3, 2)).copy()),
        (np.float32([[1, 1.5, 2.5], [4, 4.5, 5.5], [7, 7.5, 8.5]]).reshape(1, 3, 3, 1),),
    ),
    Case(
        "axes of gradients",
        BroadcastGradientArgs(),
        (np.int32([2, 1, 3]), np.int32([4, 3])),
        (np.int32([1]), np.int32([0])),
    ),
]
