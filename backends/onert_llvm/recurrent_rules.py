"""The rules for layers that keep a state from step to step, by the kind of operation."""

from __future__ import annotations

from onert.ir import Op
from onert.ir.ops.lstm import LSTM
from onert.ir.ops.svdf import SVDF

from .lower import lstm, lstm_dynamic, lstm_int8, svdf_int8, tanh_of_sum
from .lower.rule import Rule

RECURRENT: dict[type[Op], tuple[Rule, ...]] = {
    LSTM: (
        Rule(lstm.why_not, lstm.lower),
        Rule(lstm_dynamic.why_not, lstm_dynamic.lower),
        Rule(lstm_int8.why_not, lstm_int8.lower),
    ),
    tanh_of_sum.TanhOfSum: (Rule(tanh_of_sum.why_not, tanh_of_sum.lower),),
    SVDF: (Rule(svdf_int8.why_not, svdf_int8.lower),),
}
"""The forms of each for different element types."""
