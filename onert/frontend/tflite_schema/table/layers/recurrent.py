"""Layers that keep a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import fields

from onert.frontend.tflite_schema.table.importer import Operator, Table, activation
from onert.ir import ModelError, Op
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF

_FULL, _BASIC = 0, 1


_READ: dict[str, Callable[[Operator], Any]] = {
    "activation": activation,
    "time_major": lambda operator: operator.flag("time_major"),
    "merge_outputs": lambda operator: operator.flag("merge_outputs"),
    "cell_clip": lambda operator: operator.number("cell_clip"),
    "projection_clip": lambda operator: operator.number("proj_clip"),
    "asymmetric_inputs": lambda operator: operator.flag("asymmetric_quantize_inputs"),
    "intermediates": lambda operator: operator.intermediates,
    "rank": lambda operator: operator.integer("rank"),
}


def _layer(kind: type[Op]) -> Callable[[Operator], Op]:
    """A layer of a kind, each of its attributes read as the table above says."""
    return lambda operator: kind(**{each.name: _READ[each.name](operator) for each in fields(kind)})


def _lstm(operator: Operator) -> Op:
    """One step of an LSTM layer, by the kernel that the options name."""
    kind = operator.integer("kernel_type")
    if kind == _BASIC:
        return BasicLSTM()
    if kind != _FULL:
        raise ModelError(f"kernel_type is {kind}, expected {_FULL} or {_BASIC}")
    return _layer(LSTM)(operator)


TABLE: Table = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _layer(BidirectionalLSTM),
    "BIDIRECTIONAL_SEQUENCE_RNN": _layer(BidirectionalRNN),
    "GRU": lambda operator: GRU(operator.flag("return_sequences")),
    "LSTM": _lstm,
    "RNN": _layer(RNN),
    "SVDF": _layer(SVDF),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _layer(LSTM),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _layer(RNN),
}
CUSTOM: Table = {}
