"""Files of up to a megabyte of constants that are read repeatedly for computed tensors, and loops over computed windows
and steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hostile.writer import INT32, Classes, Model, Table, tensor
from onert.ir import Array

CLASSES = Classes()
_PLAIN = {"padding": 0, "stride_w": 1, "stride_h": 1}


def _reduced(model: Model, shape: Sequence[int], tensors: list[Table], operators: list[Table]) -> bytes:
    """The model whose output is the sum of the last tensor."""
    axes = model.constant(np.arange(len(shape), dtype=np.int32))
    last = len(tensors) - 1
    tensors += [axes, tensor((1,))]
    operators.append(model.operator("SUM", (last, last + 1), (last + 2,), Table("ReducerOptions", keep_dims=True)))
    return model.file(tensors, operators)


def _broadcast_element(model: Model, shape: Sequence[int]) -> tuple[list[Table], list[Table]]:
    """One element broadcast to a shape."""
    tensors = [tensor((1,)), model.constant(np.array(shape, np.int32)), tensor(shape)]
    return tensors, [model.operator("BROADCAST_TO", (0, 1), (2,))]


def _ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


@CLASSES.sized(8, 450, 1000)
def convolved(side: int) -> bytes:
    """Convolutions with shared weights over a computed image."""
    model = Model()
    channels = 168
    shape = (1, side, side, channels)
    tensors, operators = _broadcast_element(model, shape)
    tensors += [model.constant(_ones(channels, 3, 3, channels)), model.constant(_ones(channels))]
    for _ in range(4):
        tensors.append(tensor(shape))
        last = len(tensors) - 1
        given = 2 if last == 5 else last - 1
        operators.append(model.operator("CONV_2D", (given, 3, 4), (last,), Table("Conv2DOptions", **_PLAIN)))
    return _reduced(model, shape, tensors, operators)


def _filtered(layer: str, options: Table, side: int, window: int, channels: int) -> bytes:
    """A computed image, and a layer with a square window and as many outputs as there are channels."""
    model = Model()
    shape = (1, side, side, channels)
    tensors, operators = _broadcast_element(model, shape)
    tensors += [model.constant(_ones(1, window, window, channels)), model.constant(_ones(channels)), tensor(shape)]
    operators.append(model.operator(layer, (2, 3, 4), (5,), options))
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(8, 60, 4000)
def convolved_with_one_filter(side: int) -> bytes:
    """A computed image of one channel, and a window of a quarter of a million weights."""
    return _filtered("CONV_2D", Table("Conv2DOptions", **_PLAIN), side, 512, 1)


@CLASSES.sized(8, 100, 2000)
def filtered_deeply(side: int) -> bytes:
    """A computed image, and a 64x64 window for each channel."""
    return _filtered("DEPTHWISE_CONV_2D", Table("DepthwiseConv2DOptions", **_PLAIN, depth_multiplier=1), side, 64, 64)


@CLASSES.sized(8, 520, 1000)
def spread(side: int) -> bytes:
    """A computed image, upsampled by a transposed convolution."""
    model = Model()
    shape, spread = (1, side, side, 64), (1, 2 * side, 2 * side, 64)
    tensors, operators = _broadcast_element(model, shape)
    tensors += [model.constant(np.array(spread, np.int32)), model.constant(_ones(64, 8, 8, 64)), tensor(spread)]
    options = Table("TransposeConvOptions", padding=0, stride_w=2, stride_h=2)
    operators.append(model.operator("TRANSPOSE_CONV", (3, 4, 2), (5,), options))
    return _reduced(model, spread, tensors, operators)


@CLASSES.sized(8, 70_000, 400_000)
def multiplied(rows: int) -> bytes:
    """Computed rows, multiplied by a matrix many times."""
    model = Model()
    shape = (rows, 512)
    tensors, operators = _broadcast_element(model, shape)
    tensors += [model.constant(_ones(512, 512))]
    for i in range(10):
        tensors.append(tensor(shape))
        given = 2 if i == 0 else len(tensors) - 2
        options = Table("FullyConnectedOptions")
        operators.append(model.operator("FULLY_CONNECTED", (given, 3, -1), (len(tensors) - 1,), options))
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(8, 300_000, 1_000_000)
def gathered(rows: int) -> bytes:
    """Rows of a table, each gathered many times."""
    model = Model()
    shape = (rows, 512)
    tensors = [
        tensor((1,), INT32),
        model.integers(rows),
        tensor((rows,), INT32),
        model.constant(_ones(512, 512)),
        tensor(shape),
    ]
    operators = [
        model.operator("BROADCAST_TO", (0, 1), (2,)),
        model.operator("GATHER", (3, 2), (4,), Table("GatherOptions")),
    ]
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(2, 50, 300)
def broadcast(rows: int) -> bytes:
    """A constant broadcast to many rows, which stay alive while others are computed from them."""
    model = Model()
    shape = (rows, 512, 512)
    tensors = [tensor((1,)), model.constant(_ones(512, 512)), tensor((512, 512))]
    tensors += [model.constant(np.array(shape, np.int32)), tensor(shape), model.constant(np.array(0, np.int32))]
    operators = [
        model.operator("ADD", (0, 1), (2,), Table("AddOptions")),
        model.operator("BROADCAST_TO", (2, 3), (4,)),
    ]
    for _ in range(4):
        tensors.append(tensor(shape))
        given = 4 if len(tensors) == 7 else len(tensors) - 2
        operators.append(model.operator("CUMSUM", (given, 5), (len(tensors) - 1,), Table("CumsumOptions")))
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(2, 300, 1000)
def tiled_table(times: int) -> bytes:
    """A constant tiled, transposed and passed through a softmax."""
    model = Model()
    shape = (512 * times, 512)
    tensors = [tensor((1,)), model.constant(_ones(512, 512)), tensor((512, 512))]
    tensors += [model.integers(times, 1), tensor(shape), tensor(shape[::-1])]
    tensors += [model.integers(1, 0)]
    tensors += [tensor(shape[::-1])]
    operators = [
        model.operator("ADD", (0, 1), (2,), Table("AddOptions")),
        model.operator("TILE", (2, 3), (4,)),
        model.operator("TRANSPOSE", (4, 6), (5,)),
        model.operator("SOFTMAX", (5,), (7,), Table("SoftmaxOptions", beta=1.0)),
    ]
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(10, 1_000_000, 30_000_000)
def computed_window(columns: int) -> bytes:
    """A convolution with a computed window as wide as the image."""
    model = Model()
    shape = (1, 1, columns, 1)
    tensors, operators = _broadcast_element(model, shape)
    tensors += [model.constant(_ones(1)), tensor((1, 1, 1, 1))]
    options = Table("Conv2DOptions", padding=1, stride_w=1, stride_h=1)
    operators.append(model.operator("CONV_2D", (2, 2, 3), (4,), options))
    return _reduced(model, (1, 1, 1, 1), tensors, operators)


@CLASSES.sized(16, 128, 512)
def folded_window(side: int) -> bytes:
    """A convolution of two constants of equal size."""
    model = Model()
    picture, window = model.constant(_ones(1, side, side, 1)), model.constant(_ones(1, side, side, 1))
    tensors = [tensor((1,)), picture, window, model.constant(_ones(1)), tensor(picture.fields["shape"])]
    tensors.append(tensor(picture.fields["shape"]))
    options = Table("Conv2DOptions", **_PLAIN)
    operators = [
        model.operator("CONV_2D", (1, 2, 3), (4,), options),
        model.operator("ADD", (0, 4), (5,), Table("AddOptions")),
    ]
    return model.file(tensors, operators)


@CLASSES.sized(10, 15_000, 20_000_000)
def steps_of_a_sequence(steps: int) -> bytes:
    """A computed sequence of millions of steps, through a layer with computed weights."""
    model = Model()
    tensors, operators = _broadcast_element(model, (1, steps, 1))
    tensors += [model.integers(1, 1), tensor((1, 1)), model.constant(_ones(1))]
    tensors += [tensor((1, 1), is_variable=True), tensor((1, steps, 1))]
    operators += [
        model.operator("BROADCAST_TO", (0, 3), (4,)),
        model.operator(
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            (2, 4, 4, 5, 6),
            (7,),
            Table("SequenceRNNOptions", time_major=False, fused_activation_function=4),
        ),
    ]
    return _reduced(model, (1, steps, 1), tensors, operators)


@CLASSES.sized(300, 80_000, 500_000)
def frames(samples: int) -> bytes:
    """Computed samples, each the start of a frame whose spectrum is computed."""
    from flatbuffers import flexbuffers

    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("window_size", 256)
        builder.Int("stride", 1)
        builder.Bool("magnitude_squared", True)
    model = Model()
    tensors, operators = _broadcast_element(model, (samples, 1))
    shape = (1, samples - 255, 129)
    tensors.append(tensor(shape))
    operators.append(model.operator("AudioSpectrogram", (2,), (3,), custom_options=bytes(builder.Finish())))
    return _reduced(model, shape, tensors, operators)


@CLASSES.sized(16, 200, 1024)
def large_input(side: int) -> bytes:
    """Convolutions with shared weights over an image that is an input."""
    model = Model()
    channels = 160
    shape = (1, side, side, channels)
    tensors = [tensor((1, side, side, 3)), model.constant(_ones(channels, 3, 3, 3)), model.constant(_ones(channels))]
    tensors += [model.constant(_ones(channels, 3, 3, channels)), tensor(shape)]
    options = Table("Conv2DOptions", **_PLAIN)
    operators = [model.operator("CONV_2D", (0, 1, 2), (4,), options)]
    for _ in range(20):
        tensors.append(tensor(shape))
        last = len(tensors) - 1
        operators.append(model.operator("CONV_2D", (last - 1, 3, 2), (last,), options))
    return _reduced(model, shape, tensors, operators)
