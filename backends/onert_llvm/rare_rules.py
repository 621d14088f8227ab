"""The rules for kinds of operations that few models have; read where a model has one."""

from __future__ import annotations

from functools import cache

from onert.ir import Op
from onert.ir.ops.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.detection import DetectionPostProcess
from onert.ir.ops.lstm import LSTM
from onert.ir.ops.scan import RFFT2D
from onert.ir.ops.svdf import SVDF

from .lower import spelled
from .lower.enclosed import Enclosed, Find, Fuse, Why
from .lower.rule import Rule, rule
from .lower.spellings import SPELLINGS
from .lower.tanh_of_sum import TanhOfSum

_RULES: dict[type[Op], tuple[Rule, ...]] = {
    LSTM: (rule("lstm"), rule("lstm_dynamic"), rule("lstm_int8")),
    SVDF: (rule("svdf_int8"),),
    TanhOfSum: (rule("tanh_of_sum"),),
    DetectionPostProcess: (rule("detection"),),
    Conv3D: (rule("spatial", "lower_convolution", anchor=True),),
    TransposeConv3D: (rule("spatial", "lower_transposed"),),
    RFFT2D: (rule("fourier"),),
}
"""The forms of each for different element types, the best first."""


def rules(kind: type[Op], why: Why, find: Find, fuse: Fuse) -> tuple[Rule, ...]:
    """The rules for a kind; the functions say of operations that one holds what rules say of others."""
    own = _holding(why, find, fuse).get(kind)
    return (*_RULES.get(kind, ()), *(() if own is None else (own,)))


@cache
def _holding(why: Why, find: Find, fuse: Fuse) -> dict[type[Op], Rule]:
    """The rules for operations that hold graphs, or are spelt as such."""
    enclosed = Enclosed(why, find, fuse)
    return {**enclosed.rules(), **spelled.rules(enclosed, SPELLINGS)}
