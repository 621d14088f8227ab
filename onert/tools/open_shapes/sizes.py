"""Candidate sizes for dynamic dimensions, likely ones first."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence

from .dimensions import Dimension, Role

_SQUARES = (320, 224, 640, 256, 192, 160, 128, 96, 512, 384, 448, 416, 300, 299, 480, 800, 64, 48, 32, 28, 1024)
_OTHERS = ((32, 128), (32, 320), (48, 192), (48, 320), (64, 256), (480, 640), (256, 128), (384, 288), (640, 480))
"""Heights and widths of lines of text, persons, and camera pictures."""
_CHANNELS = (3, 1, 4)
_LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_000, 8, 10, 100)
_SHORT = (1, 2, 3)
_SECOND = 16_000
"""Samples in a second, for speech models."""
_LONGEST = 1000
"""The most characters of a name that is parsed as an expression."""


def assignments(
    dimensions: Sequence[Dimension],
    image_size: tuple[int, int] | None,
    fixed: Mapping[str, int],
    demanded: Sequence[int] = (),
) -> Iterator[dict[str, int]]:
    """Sets of sizes for all dimensions, by key; those in `fixed` are known.

    Batches have one item. Lengths are first the same for all dimensions, then some are 1 or twice the others.
    `demanded` are additional lengths, taken from constants. Names that are expressions are computed.
    """
    known = {**{each.key: 2 for each in dimensions}, **fixed}
    open_ = [each for each in dimensions if each.key not in fixed]
    computed = [each for each in open_ if _value(each.key, known) is not None]
    free = [each for each in open_ if each not in computed]
    for channels in _CHANNELS if any(each.role is Role.CHANNELS for each in free) else (0,):
        for sides in _planes(free, image_size):
            for lengths in _lengths([e for e in free if e.role in (Role.LENGTH, Role.SAMPLES)], demanded):
                found = {
                    **fixed,
                    **{each.key: 1 for each in free if each.role is Role.BATCH},
                    **{each.key: channels for each in free if each.role is Role.CHANNELS},
                    **sides,
                    **lengths,
                }
                for each in computed:
                    found[each.key] = _value(each.key, found) or 1
                yield found


def _planes(dimensions: Sequence[Dimension], image_size: tuple[int, int] | None) -> Iterator[dict[str, int]]:
    own = [each for each in dimensions if each.role in (Role.HEIGHT, Role.WIDTH)]
    if not own:
        yield {}
        return
    for pair in (*((image_size,) if image_size else ()), *((side, side) for side in _SQUARES), *_OTHERS):
        yield {each.key: pair[each.role is Role.WIDTH] for each in own}


def _lengths(dimensions: Sequence[Dimension], demanded: Sequence[int]) -> Iterator[dict[str, int]]:
    if not dimensions:
        yield {}
        return
    patterns = sorted(itertools.product((1, 0, 2), repeat=min(len(dimensions), 3)), key=_unlike)
    usual = dict.fromkeys((*_LENGTHS, *demanded))
    for pattern, lengths in (*((p, usual) for p in patterns), *((p, dict.fromkeys(_SHORT)) for p in patterns)):
        factors = [*pattern, *(pattern[-1] for _ in dimensions[3:])]
        for length in lengths:
            yield {
                each.key: (_SECOND if each.role is Role.SAMPLES and length == _LENGTHS[0] else length) * factor or 1
                for each, factor in zip(dimensions, factors, strict=True)
            }


def _unlike(pattern: tuple[int, ...]) -> tuple[int, int]:
    """Sort key: how many factors are not 1, and how many are 0 (a length of 1)."""
    return sum(factor != 1 for factor in pattern), pattern.count(0)


def _value(name: str, sizes: Mapping[str, int]) -> int | None:
    """The value of a name such as `past + 1` for the sizes of other names; None if it is an ordinary name."""
    if len(name) > _LONGEST:
        return None
    try:
        tree = ast.parse(name.strip(), mode="eval").body
        found = _computed(tree, sizes)
    except (ValueError, SyntaxError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    return found if isinstance(tree, ast.BinOp) and found >= 0 else None


def _computed(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    """Evaluate an expression. Raises KeyError for a name without a size, ValueError for unsupported syntax."""
    match tree:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int(number)) if abs(number) < 1 << 31:
            return number
        case ast.BinOp(
            left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.FloorDiv() as op, right=right
        ):
            a, b = _computed(left, sizes), _computed(right, sizes)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
            return a // b
    raise ValueError(ast.dump(tree))
