"""Sums of products in Einstein notation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.errors import ModelError
from onert.ir.op import Op, require
from onert.ir.shape import Dim
from onert.ir.types import CallTypes, TensorType

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EQUATION = re.compile(r"([A-Za-z]*)(,[A-Za-z]*)*->[A-Za-z]*")


@frozen
class Einsum(Op):
    """Einstein summation: multiplies elements whose labels agree and sums over labels that are not in the result.

    - `xs`: numbers of one type, one operand for each group of labels in the `equation` (`abc,cd->abd`)

    A label is one letter and stands for one dimension; a dimension of 1 is not broadcast.
    """

    equation: str

    def infer(self, *xs: TensorType) -> TensorType:
        equation = self.equation.replace(" ", "")
        require(bool(_EQUATION.fullmatch(equation)), f"equation is {self.equation!r}, expected the form ab,bc->ac")
        sides = equation.split("->")
        groups = sides[0].split(",")
        require(len(xs) == len(groups), f"there are {len(xs)} operands, expected {len(groups)}")
        sizes: dict[str, Dim] = {}
        for x, labels in zip(xs, groups, strict=True):
            require(x.dtype is xs[0].dtype and x.dtype.is_numeric, f"operands are {x} and {xs[0]}, expected one type")
            require(x.rank == len(labels), f"an operand is {x}, expected dimensions {labels}")
            for label, size in zip(labels, x.shape, strict=True):
                known = sizes.get(label)
                require(known is None or size in (None, known), f"dimension {label} is both {known} and {size}")
                sizes[label] = size if known is None else known
        result = sides[1]
        require(len(set(result)) == len(result), f"the equation's result {result} names a label twice")
        require(all(label in sizes for label in result), f"the equation's result {result} has a label of no operand")
        require(len(sizes) <= shapes.MAX_RANK, f"the equation has {len(sizes)} labels, more than {shapes.MAX_RANK}")
        return xs[0].result(tuple(sizes[label] for label in result))

    def flops(self, types: CallTypes) -> int:
        labels = self.equation.replace(" ", "").split("->")[0].split(",")
        shape = {
            label: d for at, group in enumerate(labels) for label, d in zip(group, types.input(at).shape, strict=True)
        }
        return 2 * (shapes.num_elements(tuple(shape.values())) or 0)

    def evaluate(self, *xs: Array) -> Array:
        narrow = xs[0].dtype.kind == "V" or xs[0].dtype == np.float16  # accumulated in float32, like matrix products
        wide = [x.astype(np.float32) for x in xs] if narrow else xs
        out: Array = np.einsum(self.equation.replace(" ", ""), *wide, optimize=True)
        return out.astype(xs[0].dtype)


def spelled(given: str, arrow: str, result: str, ranks: Sequence[int]) -> str:
    """The equation with every axis named: an ellipsis is replaced by unused letters, and a missing result is added.

    `given` are the groups of labels of operands with these ranks; the result is missing if `arrow` is empty. Raises
    ModelError if labels and ranks do not match.
    """
    groups = given.split(",")
    whole = f"{given}{arrow}{result}"
    if len(groups) != len(ranks):
        raise ModelError(f"equation {whole!r} has {len(groups)} operands, expected {len(ranks)}")
    free = [c for c in _LETTERS if c not in whole]
    more = [
        rank - len(group.replace("...", "")) if "..." in group else 0 for group, rank in zip(groups, ranks, strict=True)
    ]
    most = max(more)
    if min(more) < 0 or most > len(free):
        raise ModelError(f"equation {whole!r} does not fit the operands' dimensions")
    spread = "".join(free[:most])
    named = [g.replace("...", spread[most - m :]) for g, m in zip(groups, more, strict=True)]
    if not arrow:
        letters = "".join(groups).replace("...", "")
        result = ("..." if most else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return f"{','.join(named)}->{result.replace('...', spread)}"
