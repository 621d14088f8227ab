"""StableHLO's products of tensors: dot_general and convolution.

Source: the StableHLO specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise, filtered
from onert.ir.op import Op, require
from onert.ir.shape import Dim, Shape
from onert.ir.types import CallTypes, TensorType
from onert.ir.value import Value

from .shapes_and_elements import require_axes, require_shape
from .sliding import Sliding


def _require_product(x: TensorType, y: TensorType, to: DType) -> None:
    for operand in (x, y):
        plain = operand.dtype.is_numeric and (operand.quantization is None or operand.dtype.bits >= 32)
        require(plain, f"an operand is {operand}, expected numbers that are not quantised")
    require(to.is_numeric, f"the result is {to.text}, expected numbers")


def _wide(x: Array, to: DType) -> Array:
    """Elements in the type in which they are accumulated."""
    return x.astype(np.float32 if to in (DType.FLOAT16, DType.BFLOAT16) else to.numpy)


@frozen
class HloDotGeneral(Op):
    """Products of elements summed over contracting dimensions, for each index of the batching dimensions.

    - `x`, `y`: numbers; `x_batch` pairs with `y_batch` and `x_contract` with `y_contract`, in equal sizes

    The result, of element type `to`, has the batching dimensions, then the others of `x`, then the others of `y`.
    """

    to: DType
    x_batch: tuple[int, ...] = ()
    y_batch: tuple[int, ...] = ()
    x_contract: tuple[int, ...] = ()
    y_contract: tuple[int, ...] = ()

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        _require_product(x, y, self.to)
        require_axes((*self.x_batch, *self.x_contract), x.rank, "lhs dimensions")
        require_axes((*self.y_batch, *self.y_contract), y.rank, "rhs dimensions")
        for mine, theirs in ((self.x_batch, self.y_batch), (self.x_contract, self.y_contract)):
            require(len(mine) == len(theirs), f"{len(mine)} dimensions are paired with {len(theirs)}")
            for a, b in zip(mine, theirs, strict=True):
                fits = shapes.compatible((x.shape[a],), (y.shape[b],))
                require(fits, f"a dimension of {x.shape[a]} is paired with one of {y.shape[b]}")
        batch = tuple(
            d
            for a, b in zip(self.x_batch, self.y_batch, strict=True)
            for d in shapes.merge((x.shape[a],), (y.shape[b],))
        )
        shape = (
            *batch,
            *_others(x.shape, self.x_batch, self.x_contract),
            *_others(y.shape, self.y_batch, self.y_contract),
        )
        require_shape(shape, "the product's shape")
        return TensorType(self.to, shape)

    def flops(self, types: CallTypes) -> int:
        depth = math.prod(types.input(0).shape[axis] or 0 for axis in self.x_contract)
        return 2 * elementwise(types) * depth

    def evaluate(self, x: Array, y: Array) -> Array:
        free_x, free_y = (
            [axis for axis in range(a.ndim) if axis not in (*batch, *contract)]
            for a, batch, contract in ((x, self.x_batch, self.x_contract), (y, self.y_batch, self.y_contract))
        )
        batch = [x.shape[a] for a in self.x_batch]
        rows, columns = [x.shape[a] for a in free_x], [y.shape[a] for a in free_y]
        depth = math.prod(x.shape[a] for a in self.x_contract)
        left = x.transpose(*self.x_batch, *free_x, *self.x_contract).reshape(*batch, math.prod(rows), depth)
        right = y.transpose(*self.y_batch, *self.y_contract, *free_y).reshape(*batch, depth, math.prod(columns))
        out = _wide(left, self.to) @ _wide(right, self.to)
        return out.reshape([*batch, *rows, *columns]).astype(self.to.numpy)


def _others(shape: Shape, batch: Sequence[int], contract: Sequence[int]) -> Shape:
    return tuple(d for axis, d in enumerate(shape) if axis not in (*batch, *contract))


@frozen
class Places(Value):
    """The batch, feature and spatial dimensions of a tensor; of a kernel, its input, output and spatial dimensions."""

    batch: int
    feature: int
    spatial: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return (self.batch, self.feature, *self.spatial)


@frozen
class HloConvolution(Op):
    """The convolution of `x` with a kernel, with dimensions in any order.

    - `x`: numbers, with the dimensions of `x_places`
    - `kernel`: numbers, with those of `kernel_places`: inputs / feature_groups, outputs, spatial

    The result, of element type `to`, has the dimensions of `result_places`. Along its spatial dimensions, the kernel
    slides over `x` as `sliding` says, and is reversed where `reversal` says so. Either the features are split into
    `feature_groups` or the batch into `batch_groups`; each group has its own part of the kernel's outputs.
    """

    to: DType
    x_places: Places
    kernel_places: Places
    result_places: Places
    sliding: Sliding
    reversal: tuple[bool, ...]
    feature_groups: int = 1
    batch_groups: int = 1

    def infer(self, x: TensorType, kernel: TensorType) -> TensorType:
        _require_product(x, kernel, self.to)
        space = len(self.x_places.spatial)
        for places, rank, name in (
            (self.x_places, x.rank, "input"),
            (self.kernel_places, kernel.rank, "kernel"),
            (self.result_places, x.rank, "output"),
        ):
            require(len(places.all) == rank, f"the {name} has {rank} dimensions, {len(places.all)} are named")
            require_axes(places.all, rank, f"{name} dimensions")
        require(kernel.rank == x.rank, f"the kernel has {kernel.rank} dimensions, expected {x.rank}")
        self.sliding.check(space, "lhs_dilation", "rhs_dilation")
        require(len(self.reversal) == space, f"window_reversal has {len(self.reversal)} elements, expected {space}")
        return TensorType(self.to, self._shape(x.shape, kernel.shape, *self._groups(x.shape, kernel.shape)))

    def _groups(self, x: Shape, kernel: Shape) -> tuple[Dim, Dim]:
        """The result's batch size and number of features."""
        batch, features = x[self.x_places.batch], x[self.x_places.feature]
        inputs, outputs = kernel[self.kernel_places.batch], kernel[self.kernel_places.feature]
        groups, batches = self.feature_groups, self.batch_groups
        require(groups >= 1 and batches >= 1, f"there are {groups} and {batches} groups, expected at least 1")
        require(1 in (groups, batches), f"there are {groups} feature and {batches} batch groups, expected 1 of either")
        fits = features is None or inputs is None or inputs * groups == features
        require(fits, f"the kernel has {inputs} inputs in each of {groups} groups, expected {features} in total")
        for size, count in ((outputs, groups), (outputs, batches), (batch, batches)):
            require(size is None or size % count == 0, f"{size} is not divisible into {count} groups")
        return None if batch is None else batch // batches, outputs

    def _shape(self, x: Shape, kernel: Shape, batch: Dim, features: Dim) -> Shape:
        shape: list[Dim] = [None] * len(x)
        shape[self.result_places.batch], shape[self.result_places.feature] = batch, features
        spread: list[Dim] = []
        for axis, place in enumerate(self.result_places.spatial):
            size, window = x[self.x_places.spatial[axis]], kernel[self.kernel_places.spatial[axis]]
            spread.append(self.sliding.padded(axis, size))
            shape[place] = self.sliding.places(axis, size, window)
        require_shape(tuple(shape), "the convolution's shape")
        require_shape((batch, x[self.x_places.feature], *spread), "the padded shape")
        return tuple(shape)

    def flops(self, types: CallTypes) -> int:
        return filtered(types, self.kernel_places.feature)

    def rounds(self, types: CallTypes) -> int:
        return 5 * self.feature_groups * self.batch_groups

    def evaluate(self, x: Array, kernel: Array) -> Array:
        space, places, filters = len(self.reversal), self.x_places, self.kernel_places
        turned = _wide(kernel, self.to).transpose(filters.feature, filters.batch, *filters.spatial)
        turned = turned[(slice(None), slice(None), *(slice(None, None, -1 if r else 1) for r in self.reversal))]
        result = self._shape(x.shape, kernel.shape, *self._groups(x.shape, kernel.shape))
        if not all(result) or not turned.size:
            return np.zeros(shapes.static(result), self.to.numpy)
        images = _wide(x, self.to).transpose(places.batch, places.feature, *places.spatial)
        windows = self.sliding.after(2).windows(images, np.zeros((), self.to.numpy), (1, 1, *turned.shape[2:]))
        windows = windows.squeeze((2 + space, 3 + space))
        groups = self.feature_groups * self.batch_groups
        split = np.split(windows, groups, axis=1 if self.feature_groups > 1 else 0)
        axes = [1, *range(2 + space, 2 + 2 * space)], [1, *range(2, 2 + space)]
        parts = [np.tensordot(w, k, axes) for w, k in zip(split, np.split(turned, groups), strict=True)]
        out = np.concatenate(parts, axis=-1)  # batch, space, features
        back = np.argsort([self.result_places.batch, *self.result_places.spatial, self.result_places.feature])
        return np.ascontiguousarray(out.transpose(back)).astype(self.to.numpy)
