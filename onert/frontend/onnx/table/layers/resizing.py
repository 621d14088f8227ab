"""Resize and Upsample."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import axes_of, require_rank
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding

Member = TypeVar("Member", bound=Enum)


def _member(kind: type[Member], name: str, value: str) -> Member:
    """The member of an enumeration with the value of an attribute."""
    for member in kind:
        if member.value == value:
            return member
    raise ModelError(f"{name} is {value!r}, expected {', '.join(str(m.value) for m in kind)}")


def _resize(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    since_11 = node.version >= 11
    given = node.integers("axes") if node.version >= 18 else None
    axes = tuple(range(rank)) if given is None else axes_of(given, rank)
    order = np.argsort(axes, kind="stable")
    region = node.value(1) if since_11 and _is_given(node, 1) else None
    region = None if region is None else region.reshape(-1)
    scales_at, sizes_at = (2, 3) if since_11 else (1, None)
    dynamic = _has_dynamic_size(node, scales_at, sizes_at)
    if sizes_at is not None and _is_given(node, sizes_at) and _policy(node) != "stretch":
        dynamic = dynamic or any(d.type(x).shape[a] is None for a in axes)
    scales = node.constant(scales_at, "scales").reshape(-1) if not dynamic and _is_given(node, scales_at) else None
    interpolation = _member(Interpolation, "mode", node.text("mode", "nearest"))
    coordinates = _member(
        Coordinates,
        "coordinate_transformation_mode",
        node.text("coordinate_transformation_mode", "half_pixel") if since_11 else "asymmetric",
    )
    rounding = Rounding.OUTWARD
    if since_11:
        rounding = _member(Rounding, "nearest_mode", node.text("nearest_mode", "round_prefer_floor"))
    crop = coordinates is Coordinates.CROP
    if crop and region is None and _is_given(node, 1):
        return _resize_dynamic(node, axes, sizes_at, Interpolate(interpolation, (), coordinates, rounding))
    if crop and (region is None or len(region) != 2 * len(axes)):
        raise ModelError(f"roi (input 1) is required for {len(axes)} axes")
    starts, ends = (region[: len(axes)][order], region[len(axes) :][order]) if crop and region is not None else ((), ())
    sizes = None
    if dynamic:
        return _resize_dynamic(node, axes, sizes_at, Interpolate(interpolation, (), coordinates, rounding))
    if scales is None:
        if sizes_at is None or not node.has(sizes_at):
            raise ModelError("has neither scales nor sizes")
        sizes = [int(s) for s in node.constant(sizes_at, "sizes").reshape(-1)]
        sizes, scales = _keep_aspect_ratio(node, [d.type(x).shape[a] for a in axes], sizes)
        if len(sizes) != len(axes):
            raise ModelError(f"there are {len(sizes)} sizes for {len(axes)} axes")
    elif len(scales) != len(axes):
        raise ModelError(f"there are {len(scales)} scales for {len(axes)} axes")
    along = [int(i) for i in order if not _is_unchanged(i, axes, scales, sizes, d.type(x).shape) or crop]
    op = Interpolate(
        interpolation,
        tuple(axes[i] for i in along),
        coordinates,
        rounding,
        None if scales is None else tuple(float(scales[i]) for i in along),
        node.number("cubic_coeff_a", -0.75),
        node.flag("exclude_outside"),
        node.flag("antialias"),
        tuple(map(float, starts)),
        tuple(map(float, ends)),
        node.number("extrapolation_value"),
    )
    if not along:
        return x
    if sizes is None:
        return d.add(op, x)
    return d.add(op, x, d.constant([sizes[i] for i in along], DType.INT64))


def _has_dynamic_size(node: Node, scales_at: int, sizes_at: int | None) -> bool:
    """Whether the new size is known only at run time."""
    given = [at for at in (scales_at, sizes_at) if at is not None and _is_given(node, at)]
    return any(node.value(at) is None for at in given)


def _resize_dynamic(node: Node, axes: tuple[int, ...], sizes_at: int | None, plain: Interpolate) -> int:
    """Resize to sizes, by scales or to a region given by operands."""
    d, x = node.draft, operand(node, 0)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    by_size = sizes_at is not None and _is_given(node, sizes_at)
    given = Expression(d, node.input(sizes_at or 0 if by_size else (2 if node.version >= 11 else 1))).take(order, 0)
    region = None
    if plain.coordinates is Coordinates.CROP:
        both = [*order, *(len(axes) + at for at in order)]
        region = operand(node, 1).take(both, 0).operand
    op = evolve(
        plain,
        axes=tuple(sorted(axes)),
        cubic=node.number("cubic_coeff_a", -0.75),
        exclude_outside=node.flag("exclude_outside"),
        antialias=node.flag("antialias"),
        extrapolation=node.number("extrapolation_value"),
    )
    if not by_size:
        return d.add(op, x.operand, None, given.operand, region)
    sizes, scales = _dynamic_aspect_ratio(node, x, op.axes, given)
    return d.add(op, x.operand, sizes.operand, None if scales is None else scales.operand, region)


def _dynamic_aspect_ratio(
    node: Node, x: Expression, axes: tuple[int, ...], sizes: Expression
) -> tuple[Expression, Expression | None]:
    """Sizes from operands, adjusted to keep the aspect ratio if the policy says so, and then the scales."""
    policy = _policy(node)
    if policy == "stretch":
        return sizes, None
    before = x.size(axes[0]).concat([x.size(a) for a in axes[1:]], 0).cast(DType.FLOAT64)
    kind = Reduction.MIN if policy == "not_larger" else Reduction.MAX
    scale = (sizes.cast(DType.FLOAT64) / before).reduce(kind, [0])
    found = (before * scale + 0.5).unary(UnaryKind.FLOOR)
    return found.cast(DType.INT64), (scale + before * 0).cast(DType.FLOAT32)


def _policy(node: Node) -> str:
    policy = node.text("keep_aspect_ratio_policy", "stretch") if node.version >= 18 else "stretch"
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise ModelError(f"keep_aspect_ratio_policy is {policy!r}, expected stretch, not_larger or not_smaller")
    return policy


def _is_given(node: Node, index: int) -> bool:
    """Whether an input is present and not empty; an empty one means none."""
    return node.has(index) and 0 not in node.type(index).shape


def _is_unchanged(
    i: int, axes: tuple[int, ...], scales: Array | None, sizes: list[int] | None, shape: tuple[int | None, ...]
) -> bool:
    if scales is not None:
        return float(scales[i]) == 1
    return sizes is not None and sizes[i] == shape[axes[i]]


def _keep_aspect_ratio(node: Node, before: list[int | None], sizes: list[int]) -> tuple[list[int], Array | None]:
    """The sizes adjusted to keep the aspect ratio, and the scales, if the policy says so."""
    policy = _policy(node)
    if policy == "stretch":
        return sizes, None
    if 0 in before:
        raise ModelError(f"keep_aspect_ratio_policy is {policy!r} for dimensions {before}")
    ratios = [size / (b or 1) for size, b in zip(sizes, before, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    found = [int(np.floor((b or 0) * scale + 0.5)) for b in before]
    return found, np.full(len(found), scale, np.float32)


def _upsample(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    mode = node.text("mode", "nearest")
    interpolation = _member(Interpolation, "mode", {"bilinear": "linear"}.get(mode, mode))
    if node.version >= 9 and node.value(1) is None:
        plain = Interpolate(interpolation, tuple(range(rank)), Coordinates.ASYMMETRIC, Rounding.FLOOR)
        return d.add(plain, x, None, node.input(1))
    scales = node.constant(1, "scales").reshape(-1) if node.version >= 9 else np.array(node.numbers("scales") or ())
    if len(scales) != rank:
        raise ModelError(f"there are {len(scales)} scales for {rank} axes")
    along = tuple(i for i in range(rank) if float(scales[i]) != 1)
    op = Interpolate(
        interpolation,
        along,
        Coordinates.ASYMMETRIC,
        Rounding.FLOOR,
        tuple(float(scales[i]) for i in along),
    )
    return d.add(op, x) if along else x


TABLE: dict[str, Importer] = {"Resize": _resize, "Upsample": _upsample}
