"""Layers with a state."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, read
from onert.ir import ModelError, Op
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF

_FULL, _BASIC = 0, 1


def _lstm(operator: Operator) -> Op:
    """One step of an LSTM layer, full or basic according to the options."""
    kind = operator.integer("kernel_type")
    if kind == _BASIC:
        return BasicLSTM()
    if kind != _FULL:
        raise ModelError(f"kernel_type is {kind}, expected {_FULL} or {_BASIC}")
    return _FULL_LSTM(operator)


_FULL_LSTM = read(LSTM, projection_clip="proj_clip", intermediates=lambda operator: operator.intermediates)

TABLE: Table = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": read(BidirectionalLSTM, projection_clip="proj_clip"),
    "BIDIRECTIONAL_SEQUENCE_RNN": read(BidirectionalRNN),
    "GRU": read(GRU),
    "LSTM": _lstm,
    "RNN": read(RNN),
    "SVDF": read(SVDF),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _FULL_LSTM,
    "UNIDIRECTIONAL_SEQUENCE_RNN": read(RNN),
}
CUSTOM: Table = {}
