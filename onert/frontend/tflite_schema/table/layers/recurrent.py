"""Layers that keep a state."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, activation
from onert.ir import ModelError, Op
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF

_FULL, _BASIC = 0, 1


def _lstm(operator: Operator) -> Op:
    """One step of an LSTM layer, by the kernel that the options name."""
    kind = operator.integer("kernel_type")
    if kind == _BASIC:
        return BasicLSTM()
    if kind != _FULL:
        raise ModelError(f"kernel_type is {kind}, expected {_FULL} or {_BASIC}")
    return _sequence_lstm(operator)


def _sequence_lstm(operator: Operator) -> Op:
    return LSTM(
        activation(operator),
        operator.flag("time_major"),
        operator.number("cell_clip"),
        operator.number("proj_clip"),
        operator.flag("asymmetric_quantize_inputs"),
        operator.intermediates,
    )


def _bidirectional_lstm(operator: Operator) -> Op:
    return BidirectionalLSTM(
        activation(operator),
        operator.flag("time_major"),
        operator.flag("merge_outputs"),
        operator.number("cell_clip"),
        operator.number("proj_clip"),
        operator.flag("asymmetric_quantize_inputs"),
    )


def _rnn(operator: Operator) -> Op:
    return RNN(activation(operator), operator.flag("time_major"), operator.flag("asymmetric_quantize_inputs"))


def _bidirectional_rnn(operator: Operator) -> Op:
    return BidirectionalRNN(
        activation(operator),
        operator.flag("time_major"),
        operator.flag("merge_outputs"),
        operator.flag("asymmetric_quantize_inputs"),
    )


def _svdf(operator: Operator) -> Op:
    return SVDF(operator.integer("rank"), activation(operator), operator.flag("asymmetric_quantize_inputs"))


TABLE: Table = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _bidirectional_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": _bidirectional_rnn,
    "GRU": lambda operator: GRU(operator.flag("return_sequences")),
    "LSTM": _lstm,
    "RNN": _rnn,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn,
}
CUSTOM: Table = {}
