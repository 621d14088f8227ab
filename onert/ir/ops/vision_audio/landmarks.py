"""Regions of an image defined by landmarks: their transformation matrix, and features and points transformed by it.

Sources: MediaPipe's custom operators Landmarks2TransformMatrix, TransformTensorBilinear and TransformLandmarks;
DenseImageWarp of LiteRT's kernels/perception (tfa.image.dense_image_warp).
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.shape import Dim
from onert.ir.types import TensorType

MAX_SIZE = 1 << 16


def _require_floats(x: TensorType, name: str, rank: int) -> None:
    require(x.dtype is DType.FLOAT32, f"{name} is {x}, expected f32")
    require(x.rank == rank, f"{name} is {x}, expected {rank} dimensions")


def _require_matrix(matrix: TensorType, batch: Dim) -> None:
    _require_floats(matrix, "the matrix", 3)
    require(shapes.compatible(matrix.shape, (batch, 4, 4)), f"the matrix is {matrix}, expected [{batch}, 4, 4]")


@frozen
class LandmarksToMatrix(Op):
    """The matrix that maps a picture of a region to the whole image. The region contains some landmarks and is rotated
    so that two of them are level.

    - `landmarks`: float32 [batch, count, 2 or more], x and y first

    The result is [batch, 4, 4]. `left` and `right` are the landmarks that are level, `subset` those that the region
    contains: it is their bounding box, scaled by `scale_x` and `scale_y`, and becomes a picture of `width` by `height`.
    """

    left: int
    right: int
    subset: tuple[int, ...]
    width: int
    height: int
    scale_x: float = 1.0
    scale_y: float = 1.0

    def infer(self, landmarks: TensorType) -> TensorType:
        _require_floats(landmarks, "landmarks", 3)
        count, parts = landmarks.shape[1:]
        require(parts is None or parts >= 2, f"landmarks have {parts} coordinates, expected at least 2")
        require(bool(self.subset), "the subset is empty, expected at least 1 landmark")
        for index in (self.left, self.right, *self.subset):
            inside = index >= 0 and (count is None or index < count)
            require(inside, f"landmark {index} is named, expected less than {count}")
        for size, name in ((self.width, "output_width"), (self.height, "output_height")):
            require(1 <= size <= MAX_SIZE, f"{name} is {size}, expected 1 to {MAX_SIZE}")
        return landmarks.result((landmarks.shape[0], 4, 4))

    def evaluate(self, landmarks: Array) -> Array:
        points = landmarks[:, :, :2]
        along = points[:, self.right] - points[:, self.left]
        u = along / np.linalg.norm(along, axis=1, keepdims=True)
        v = np.stack([-u[:, 1], u[:, 0]], axis=1)
        axes = np.stack([u, v], axis=1)  # of the region, in the image
        inside = points[:, list(self.subset)] @ axes.transpose(0, 2, 1)
        low, high = inside.min(axis=1), inside.max(axis=1)
        center = ((low + high)[:, None] @ axes)[:, 0] / 2
        size = np.array([self.scale_x / self.width, self.scale_y / self.height], np.float32) * (high - low)
        steps = axes * size[:, :, None]
        corner = center - steps[:, 0] * (self.width / 2) - steps[:, 1] * (self.height / 2)
        out = np.tile(np.eye(4, dtype=np.float32), (len(points), 1, 1))
        out[:, :2, 0], out[:, :2, 1], out[:, :2, 3] = steps[:, 0], steps[:, 1], corner
        return out


def _moved(points: Array, matrix: Array) -> Array:
    """Points [batch, count, 2] transformed by the rotation and translation of the matrix."""
    out: Array = points @ matrix[:, :2, :2].transpose(0, 2, 1) + matrix[:, None, :2, 3]
    return out


@frozen
class TransformLandmarks(Op):
    """Maps points of a picture of a region to points of the whole image.

    - `points`: float32 [batch, count, 2 or more]; coordinates after x and y are unchanged
    - `matrix`: float32 [batch, 4, 4], as returned by LandmarksToMatrix
    """

    def infer(self, points: TensorType, matrix: TensorType) -> TensorType:
        _require_floats(points, "points", 3)
        require(
            points.shape[2] is None or points.shape[2] >= 2, f"points are {points}, expected at least 2 coordinates"
        )
        _require_matrix(matrix, points.shape[0])
        return points.result(points.shape)

    def evaluate(self, points: Array, matrix: Array) -> Array:
        return np.concatenate([_moved(points[:, :, :2], matrix), points[:, :, 2:]], axis=2).astype(np.float32)


@frozen
class TransformTensor(Op):
    """The part of features that a matrix maps to, as a picture of `height` by `width`, with bilinear interpolation.

    - `features`: float32 [batch, height, width, channels]; 0 outside
    - `matrix`: float32 [batch, 4, 4], from positions (x, y) of the result to those of the features
    """

    height: int
    width: int

    def infer(self, features: TensorType, matrix: TensorType) -> TensorType:
        _require_floats(features, "features", 4)
        _require_matrix(matrix, features.shape[0])
        for size, name in ((self.width, "output_width"), (self.height, "output_height")):
            require(1 <= size <= MAX_SIZE, f"{name} is {size}, expected 1 to {MAX_SIZE}")
        return features.result((features.shape[0], self.height, self.width, features.shape[3]))

    def evaluate(self, features: Array, matrix: Array) -> Array:
        rows, columns = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32)
        places = np.stack([columns.reshape(-1), rows.reshape(-1)], axis=1)
        source = _moved(np.broadcast_to(places, (len(features), *places.shape)), matrix)
        base = np.floor(source)
        part = source - base
        out = np.zeros((len(features), self.height * self.width, features.shape[3]), np.float32)
        for down in (0, 1):
            for right in (0, 1):
                x, y = base[..., 0] + right, base[..., 1] + down
                weight = np.abs(1 - right - part[..., 0]) * np.abs(1 - down - part[..., 1])
                out += _picked(features, y, x) * weight[..., None]
        return out.reshape(len(features), self.height, self.width, features.shape[3])


def _picked(features: Array, y: Array, x: Array) -> Array:
    """The features at given positions, 0 outside of the image."""
    height, width = features.shape[1:3]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    if not height or not width:
        return np.zeros((*y.shape, features.shape[3]), np.float32)
    rows, columns = (np.where(inside, place, 0).astype(np.int64) for place in (y, x))
    item = np.arange(len(features))[:, None]
    return np.where(inside[..., None], features[item, rows, columns], np.float32(0))


@frozen
class DenseImageWarp(Op):
    """Warps an image: each pixel is read from another position, with bilinear interpolation.

    - `image`: float32 [batch, height, width, channels], at least 2 high and wide
    - `flow`: float32 [batch, height, width, 2]: how far above and to the left of a pixel its source is; a source
      outside is moved to the edge
    """

    def infer(self, image: TensorType, flow: TensorType) -> TensorType:
        _require_floats(image, "the image", 4)
        _require_floats(flow, "the flow", 4)
        wanted = (*image.shape[:3], 2)
        require(shapes.compatible(flow.shape, wanted), f"the flow is {flow}, expected {shapes.text(wanted)}")
        for size in image.shape[1:3]:
            require(size is None or size >= 2, f"the image is {image}, expected at least 2 high and wide")
        return image.result(image.shape)

    def evaluate(self, image: Array, flow: Array) -> Array:
        height, width = image.shape[1:3]
        rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
        source = np.nan_to_num(np.stack([rows, columns], axis=-1) - flow)
        base = np.clip(np.floor(source), 0, np.array([height - 2, width - 2]))
        part = np.clip(source - base, 0, 1).astype(np.float32)
        y, x = (base[..., axis].astype(np.int64) for axis in (0, 1))
        item = np.arange(len(image))[:, None, None]
        down, right = part[..., :1], part[..., 1:]
        above = image[item, y, x] * (1 - right) + image[item, y, x + 1] * right
        below = image[item, y + 1, x] * (1 - right) + image[item, y + 1, x + 1] * right
        out: Array = above * (1 - down) + below * down
        return out.astype(np.float32)
