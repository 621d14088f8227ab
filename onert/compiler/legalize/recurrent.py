"""Recurrent layers as graphs of products, element-wise operations and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, Op, TensorType
from onert.ir.op import with_absent
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.recurrent.lstm_parts import CELL, FORGET, INPUT, OUTPUT, Parts, parts
from onert.ir.ops.recurrent.recurrent import EIGHT_BITS, why_no_layer
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF
from onert.ir.ops.recurrent.tanh_of_sum import TanhOfSum
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.shape import static

from .decomposition import Decomposition
from .draft import Draft

# ---- RNN and GRU: the state is the last output


def _why_no_rnn(op: RNN | BidirectionalRNN, types: CallTypes) -> str | None:
    return why_no_layer(types, (0, 4) if isinstance(op, RNN) else (0, 4, 8, 9))


Step = Callable[[Draft, int, int], int]
"""Drafts the next state, given one step's input row and the state."""


def _steps(d: Draft, inputs: int, h: int, step: Step, backward: bool = False) -> tuple[int, int]:
    """All outputs `[time, batch, units]`, and the last one. The steps read `inputs[time, batch, size]`."""
    found, (last,) = _scan(d, inputs, (h,), lambda b, row, states: [step(b, row, states[0])], backward)
    return found, last


def _scan(
    d: Draft,
    inputs: int,
    states: Sequence[int],
    step: Callable[[Draft, int, Sequence[int]], Sequence[int]],
    backward: bool = False,
) -> tuple[int, Sequence[int]]:
    """The first state `[time, batch, units]` after each step, and all states after the last. The steps read
    `inputs[time, batch, size]`."""
    time, batch, _ = d.shape(inputs)
    units = d.shape(states[0])[1]
    if time == 1:
        found = step(d, d.reshaped(inputs, batch, d.shape(inputs)[2]), states)
        return d.add(Reshape(), found[0], d.integers(1, batch, units)), found

    def each(b: Draft, at: int, carried: Sequence[int]) -> Sequence[int]:
        rows, *state, outputs = carried
        time_step = b.difference(b.number(time - 1), at) if backward else at
        state = list(step(b, b.add(Gather(), rows, time_step), state))
        return (
            rows,
            *state,
            b.add(PutRow(), outputs, b.add(Reshape(), state[0], b.integers(1, batch, units)), time_step),
        )

    zeros = d.add(Fill(), d.integers(time, batch, units), d.constant(np.zeros((), np.float32)))
    _, *last, history = d.counted_loop(time, (inputs, *states, zeros), each)
    return history, last


def _rnn_layer(
    d: Draft,
    op: RNN | BidirectionalRNN,
    x: int,
    weights: Sequence[int | None],
    h: int,
    aux: tuple[int, int] | None = None,
    backward: bool = False,
) -> tuple[int, int]:
    """All outputs and the last one for `x[time, batch, features]`; `weights` are weights, recurrent weights, bias."""
    first, recurrent, bias = _present(weights[0]), _present(weights[1]), weights[2]
    time, batch, features = d.shape(x)
    units = d.shape(h)[1]
    projected = d.rows_times(d.reshaped(x, time * batch, features), first, bias, op.asymmetric_inputs)
    if aux is not None:
        rows = d.reshaped(aux[0], time * batch, d.shape(aux[0])[2])
        projected = d.sum(projected, d.rows_times(rows, aux[1], None, op.asymmetric_inputs))
    matrix = d.type(recurrent)

    def step(b: Draft, row: int, state: int) -> int:
        recurrent_part = b.rows_times(state, b.constant_of(matrix), None, op.asymmetric_inputs)
        if matrix.dtype in EIGHT_BITS and op.activation is Activation.TANH:
            return b.add(TanhOfSum(), row, recurrent_part)
        return b.activated(row, recurrent_part, op.activation)

    return _steps(d, d.reshaped(projected, time, batch, units), h, step, backward)


def _present(operand: int | None) -> int:
    assert operand is not None
    return operand


def _rnn(d: Draft, op: RNN, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    x, h = _present(operands[0]), _present(operands[4])
    batch_first = len(d.shape(x)) == 3 and not op.time_major
    steps = d.swapped(x) if batch_first else d.reshaped(x, *(1, *d.shape(x))[-3:])
    y, last = _rnn_layer(d, op, steps, operands[1:4], h)
    return [_laid_out(d, y, static(types.output.shape), batch_first), last]


def _laid_out(d: Draft, y: int, shape: tuple[int, ...], swap: bool) -> int:
    """Outputs `[time, batch, size]` in the result's layout, always copied by a separate operation."""
    if swap and 1 not in d.shape(y)[:2]:
        return d.swapped(y)
    return d.add(Reshape(), y, d.integers(*shape))


def _bidirectional_rnn(
    d: Draft, op: BidirectionalRNN, types: CallTypes, operands: Sequence[int | None]
) -> Sequence[int]:
    found = with_absent(operands, 12)
    x, aux = found[0], found[9]
    linked = found[10] is not None

    def steps(operand: int | None) -> int:
        return _present(operand) if op.time_major else d.swapped(_present(operand))

    outputs, states = [], []
    for first, aux_weights, backward in ((1, 10, False), (5, 11, True)):
        inputs = aux if backward and aux is not None and not linked else x
        extra = (steps(aux), _present(found[aux_weights])) if linked else None
        h = _present(found[first + 3])
        y, last = _rnn_layer(d, op, steps(inputs), found[first : first + 3], h, extra, backward)
        outputs.append(y if op.time_major else d.swapped(y))
        states.append(last)
    if op.merge_outputs:
        outputs = [d.add(Concat(-1), *outputs)]
    return [*outputs, *states]


def _gru(d: Draft, op: GRU, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    x, weights, bias, _, _, h = operands
    time, batch, features = d.shape(_present(x))
    units = static(types.input(3).shape)[1]
    projected = d.rows_times(d.reshaped(_present(x), time * batch, features), _present(weights), bias)

    def step(b: Draft, row: int, state: int) -> int:
        weights, bias = (None if t is None else b.constant_of(t) for t in types.inputs[3:5])
        axis, one = b.number(-1), b.constant(np.ones(1, np.float32))
        x_z, x_r, x_c = b.add_many(Split(3), axis, row)
        h_z, h_r, h_c = b.add_many(Split(3), axis, b.rows_times(state, _present(weights), bias))
        update, reset = b.logistic(b.sum(x_z, h_z)), b.logistic(b.sum(x_r, h_r))
        new = b.tanh(b.sum(x_c, b.product(reset, h_c)))
        return b.sum(b.product(state, update), b.product(b.difference(one, update), new))

    y, last = _steps(d, d.reshaped(projected, time, batch, 3 * units), d.reshaped(_present(h), batch, units), step)
    return [y if op.return_sequences else d.add(Reshape(), last, d.integers(1, batch, units))]


def _value(t: TensorType) -> Array:
    assert t.value is not None
    return t.value


# ---- SVDF: filters over features and time


def _why_no_svdf(op: SVDF, types: CallTypes) -> str | None:
    if types.input(0).dtype is not DType.FLOAT32:
        return "only float32 is native"
    return why_no_layer(types, (0, 4))


def _svdf(d: Draft, op: SVDF, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    x, feature, _, bias, state = operands
    time = types.input(2)
    (filters, memory), batch = static(time.shape), static(types.input(0).shape)[0]
    newest = d.reshaped(d.rows_times(_present(x), _present(feature), None, op.asymmetric_inputs), batch, filters, 1)
    if memory > 1:
        before = d.reshaped(_present(state), batch, filters, memory)
        recent = d.add(Slice(), before, d.integers(0, 0, 1), d.integers(batch, filters, memory - 1))
        newest = d.add(Concat(-1), recent, newest)
    weighted = d.product(newest, d.constant(_real(time)))
    total = d.add(Reduce(Reduction.SUM), weighted, d.integers(2))
    if op.rank > 1:
        total = d.add(Reduce(Reduction.SUM), d.reshaped(total, batch, filters // op.rank, op.rank), d.integers(2))
    y = d.activated(total, bias, op.activation)
    return [y, d.add(Reshape(), newest, d.integers(batch, memory * filters))]


def _real(t: TensorType) -> Array:
    """Weights as floats; bytes are read as signed whatever their declared type."""
    value = _value(t)
    if t.dtype not in EIGHT_BITS:
        return value
    out: Array = np.float32(t.scale) * value.view(np.int8).astype(np.float32)
    return out


# ---- LSTM


def _why_no_lstm(op: LSTM, types: CallTypes) -> str | None:
    floats = all(t is None or t.dtype is DType.FLOAT32 for t in types.inputs)
    if not floats or any(t is not None and t.rank == 1 for t in types.inputs[5:9]):
        return "its weights are not matrices of float32"
    if op.activation is Activation.SIGN_BIT:
        return "its activation is SIGN_BIT"
    return why_no_layer(types, (0, 18, 19))


def _lstm(d: Draft, op: LSTM, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """One product of all gates' weights and all steps' inputs, and a loop over what depends on the state"""
    kinds = with_absent(types.inputs, 24)
    layer = parts(kinds[1:18], kinds[20:24])
    x, h, c = (_present(operands[i]) for i in (0, 18, 19))
    batch_first = len(d.shape(x)) == 3 and not op.time_major
    steps = d.swapped(x) if batch_first else d.reshaped(x, *(1, *d.shape(x))[-3:])
    time, batch, features = d.shape(steps)
    bias = _concatenated(layer.bias) if layer.norm[OUTPUT] is None else None
    weights, recurrent = _concatenated(layer.weights), _concatenated(layer.recurrent)
    rows = d.reshaped(steps, time * batch, features)
    projected = d.rows_times(rows, d.constant(weights), None if bias is None else d.constant(bias))
    cells, outputs = len(_value(_present_type(layer.weights[OUTPUT]))), recurrent.shape[1]

    def step(b: Draft, row: int, states: Sequence[int]) -> Sequence[int]:
        total = b.sum(row, b.rows_times(states[0], b.constant(recurrent), None))
        each = b.add_many(Split(len(weights) // cells), b.number(-1), total)
        return _lstm_step(b, op, layer, each, states[1])

    initial = (d.reshaped(h, batch, outputs), d.reshaped(c, batch, cells))
    y, last = _scan(d, d.reshaped(projected, time, batch, len(weights)), initial, step)
    final = (d.reshaped(state, *static(t.shape)) for state, t in zip(last, types.outputs[1:], strict=True))
    return [_laid_out(d, y, static(types.output.shape), batch_first), *final]


def _lstm_step(b: Draft, op: LSTM, layer: Parts[TensorType], sums: Sequence[int], c: int) -> Sequence[int]:
    """The next output and cell state, given each gate's sum; a coupled layer has none for the input gate."""
    present = (FORGET, CELL, OUTPUT) if layer.coupled else (INPUT, FORGET, CELL, OUTPUT)
    gates = dict(zip(present, sums, strict=True))

    def gate(at: int, cell: int) -> int:
        z, peephole, norm = gates[at], layer.peephole[at], layer.norm[at]
        if peephole is not None:
            z = b.sum(z, b.product(cell, b.constant_of(peephole)))
        return z if norm is None else _layer_norm(b, z, norm, _present_type(layer.bias[at]))

    forget_gate = b.logistic(gate(FORGET, c))
    input_gate = b.difference(b.real(1), forget_gate) if layer.coupled else b.logistic(gate(INPUT, c))
    c = b.sum(b.product(forget_gate, c), b.product(input_gate, b.bounded(gate(CELL, c), op.activation)))
    c = b.clamped(c, -op.cell_clip, op.cell_clip) if op.cell_clip > 0 else c
    h = b.product(b.logistic(gate(OUTPUT, c)), b.bounded(c, op.activation))
    if layer.projection is not None:
        offset = None if layer.projection_bias is None else b.constant_of(layer.projection_bias)
        h = b.rows_times(h, b.constant_of(layer.projection), offset)
        h = b.clamped(h, -op.projection_clip, op.projection_clip) if op.projection_clip > 0 else h
    return h, c


def _layer_norm(b: Draft, z: int, norm: TensorType, bias: TensorType) -> int:
    """Layer normalisation of a gate's sums: minus their mean, divided by their deviation."""
    centred = b.difference(z, b.reduced(Reduction.MEAN, z, (1,), keep_dims=True))
    variance = b.reduced(Reduction.MEAN, b.unary(UnaryKind.SQUARE, centred), (1,), keep_dims=True)
    scaled = b.product(centred, b.unary(UnaryKind.RSQRT, b.sum(variance, b.real(1e-8))))
    return b.sum(b.product(scaled, b.constant_of(norm)), b.constant_of(bias))


def _present_type(t: TensorType | None) -> TensorType:
    assert t is not None
    return t


def _concatenated(gates: Sequence[TensorType | None]) -> Array:
    """The constants of all present gates, concatenated."""
    return np.concatenate([_value(t) for t in gates if t is not None])


def _why_no_bidirectional_lstm(op: BidirectionalLSTM, types: CallTypes) -> str | None:
    if types.input(4).dtype in EIGHT_BITS and len(types.inputs) > 41 and types.inputs[41] is not None:
        return "weights of bytes for an auxiliary input are not native"
    return why_no_layer(types, (0, 35, 36, 37, 38, 39))


def _bidirectional_lstm(
    d: Draft, op: BidirectionalLSTM, types: CallTypes, operands: Sequence[int | None]
) -> Sequence[int]:
    """One LSTM layer per direction. A linked auxiliary input is concatenated to the input, likewise the weights."""
    kinds, inputs = with_absent(types.inputs, 48), with_absent(operands, 48)
    x, aux, time = _present(inputs[0]), inputs[39], 0 if op.time_major else 1
    linked = kinds[41] is not None
    layer = LSTM(op.activation, op.time_major, op.cell_clip, op.projection_clip, op.asymmetric_inputs)
    with_aux = d.add(Concat(-1), x, _present(aux)) if linked else x
    outputs: list[int] = []
    states: list[int] = []
    for number, backward in ((0, False), (1, True)):
        sequence = aux if backward and aux is not None and not linked else with_aux
        sequence = d.backward(sequence, time) if backward else sequence
        weights: list[int | None] = []
        for at in range(17):
            t = kinds[1 + 17 * number + at]
            if t is None:
                weights.append(None)
                continue
            aux_weight = kinds[40 + 4 * number + at] if linked and at < 4 else None
            if aux_weight is None:
                weights.append(inputs[1 + 17 * number + at])
            else:
                array = np.concatenate([_value(t), _value(aux_weight)], axis=1)
                weights.append(d.constant(array, t.quantization, dtype=t.dtype))
        y, h, c = d.add_many(layer, sequence, *weights, inputs[35 + 2 * number], inputs[36 + 2 * number])
        outputs.append(d.backward(y, time) if backward else y)
        states += [h, c]
    if op.merge_outputs:
        outputs = [d.add(Concat(-1), *outputs)]
    return [*outputs, *states]


def _why_no_basic_lstm(op: BasicLSTM, types: CallTypes) -> str | None:
    return "only float32 is native" if types.input(0).dtype is not DType.FLOAT32 else why_no_layer(types, (0, 1, 4))


def _basic_lstm(d: Draft, op: BasicLSTM, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    x, h, weights, bias, c = operands
    joined = d.add(Concat(1), x, h)
    gates = d.rows_times(joined, _present(weights), bias)
    input_gate, update, forget, output = d.add_many(Split(4), d.number(1), gates)
    remembered = d.product(d.logistic(forget), _present(c))
    state = d.sum(d.product(d.logistic(input_gate), d.tanh(update)), remembered)
    y = d.product(d.logistic(output), d.tanh(state))
    return [y, state, joined, gates, y, state]


DECOMPOSITIONS: dict[type[Op], tuple[Decomposition, ...]] = {
    RNN: (Decomposition(_why_no_rnn, _rnn),),
    BidirectionalRNN: (Decomposition(_why_no_rnn, _bidirectional_rnn),),
    GRU: (Decomposition(lambda op, types: why_no_layer(types, (0, 5)), _gru),),
    SVDF: (Decomposition(_why_no_svdf, _svdf),),
    BidirectionalLSTM: (Decomposition(_why_no_bidirectional_lstm, _bidirectional_lstm),),
    LSTM: (Decomposition(_why_no_lstm, _lstm),),
    BasicLSTM: (Decomposition(_why_no_basic_lstm, _basic_lstm),),
}
