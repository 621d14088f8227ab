"""Small files with large tensors: declared, computed before the run, or requested during it."""

from __future__ import annotations

import numpy as np

from hostile.writer import INT32, INT64, Classes, Model, Table, tensor

CLASSES = Classes()
HUGE = (1 << 31) - 1
_MILLIONS = (1, 400, 2000)


def _one(name: str, inputs: list[Table], outputs: list[Table], options: Table | None, model: Model) -> bytes:
    """A model of one operator, whose first input is the model's."""
    tensors = [*inputs, *outputs]
    ends = range(len(inputs), len(tensors))
    return model.file(tensors, [model.operator(name, range(len(inputs)), ends, options)], (0,), ends)


@CLASSES.sized(*_MILLIONS)
def declared_input(millions: int) -> bytes:
    """An input of that many million elements."""
    model = Model()
    shape = (millions, 1000, 1000)
    return _one("RELU", [tensor(shape)], [tensor(shape)], None, model)


@CLASSES.sized(*_MILLIONS)
def intermediate(millions: int) -> bytes:
    """One element, broadcast to many and summed to one again."""
    model = Model()
    dims = model.integers(millions, 1000, 1000)
    axes = model.integers(0, 1, 2)
    large = tensor((millions, 1000, 1000))
    tensors = [tensor((1,)), dims, large, large, axes, tensor((1,))]
    operators = [
        model.operator("BROADCAST_TO", (0, 1), (2,)),
        model.operator("SOFTMAX", (2,), (3,), Table("SoftmaxOptions", beta=1.0)),
        model.operator("SUM", (3, 4), (5,), Table("ReducerOptions", keep_dims=True)),
    ]
    return model.file(tensors, operators)


@CLASSES.sized(*_MILLIONS)
def folded_fill(millions: int) -> bytes:
    """A constant filled before the run."""
    model = Model()
    dims = model.integers(millions, 1000, 1000)
    value = model.constant(np.array(1, np.float32))
    tensors = [tensor((1,)), dims, value, tensor((millions, 1000, 1000)), tensor((millions, 1000, 1000))]
    operators = [
        model.operator("FILL", (1, 2), (3,)),
        model.operator("ADD", (0, 3), (4,), Table("AddOptions")),
    ]
    return model.file(tensors, operators)


@CLASSES.sized(100, 500_000, 2_000_000)
def folded_range(thousands: int) -> bytes:
    """A range generated before the run."""
    model = Model()
    numbers = [model.constant(np.array(n, np.int32)) for n in (0, min(1000 * thousands, HUGE), 1)]
    tensors = [tensor((1,), INT32), *numbers, tensor((1,), INT32), tensor((1,), INT32)]
    operators = [
        model.operator("RANGE", (1, 2, 3), (4,)),
        model.operator("ADD", (0, 4), (5,), Table("AddOptions")),
    ]
    return model.file(tensors, operators)


@CLASSES.sized(10, 1000, 6000)
def many_small_folds(count: int) -> bytes:
    """`count` constants of 16 kB, one for each pair of operations."""
    model = Model()
    dims, one = model.integers(4000), tensor((4000,))
    tensors = [tensor((1,)), dims]
    operators, last = [], 0
    for i in range(count):
        at = len(tensors)
        tensors += [model.constant(np.array(i, np.float32)), one, one]
        operators.append(model.operator("FILL", (1, at), (at + 1,)))
        operators.append(model.operator("ADD", (last, at + 1), (at + 2,), Table("AddOptions")))
        last = at + 2
    return model.file(tensors, operators)


@CLASSES.sized(10, 29, 60)
def doubling(times: int) -> bytes:
    """A tensor that is repeatedly concatenated with itself."""
    model = Model()
    tensors = [tensor((1,)) for _ in range(times + 1)]
    options = Table("ConcatenationOptions")
    operators = [model.operator("CONCATENATION", (i, i), (i + 1,), options) for i in range(times)]
    return model.file(tensors, operators)


@CLASSES.sized(10, 29, 60)
def doubling_constant(times: int) -> bytes:
    """A constant that is repeatedly concatenated with itself and added to the input."""
    model = Model()
    tensors = [model.constant(np.ones(1, np.float32)), *(tensor((1,)) for _ in range(times)), tensor(), tensor()]
    options = Table("ConcatenationOptions")
    operators = [model.operator("CONCATENATION", (i, i), (i + 1,), options) for i in range(times)]
    operators.append(model.operator("ADD", (times + 1, times), (times + 2,), Table("AddOptions")))
    return model.file(tensors, operators, (times + 1,), (times + 2,))


@CLASSES.sized(*_MILLIONS)
def unknown_before_the_run(millions: int) -> bytes:
    """Dimensions known only at run time: the input's elements plus constants."""
    model = Model()
    dims = model.integers(millions, 1000, 1000)
    axes = model.integers(0, 1, 2)
    tensors = [tensor((3,), INT32), dims, tensor((3,), INT32), model.constant(np.array(2, np.float32)), tensor(())]
    tensors += [tensor(()), axes, tensor((1,))]
    operators = [
        model.operator("ADD", (0, 1), (2,), Table("AddOptions")),
        model.operator("FILL", (2, 3), (4,)),
        model.operator("EXP", (4,), (5,)),
        model.operator("SUM", (5, 6), (7,), Table("ReducerOptions")),
    ]
    return model.file(tensors, operators)


@CLASSES.sized(10, 29, 60)
def unknown_doubling(times: int) -> bytes:
    """A tensor of a size known only at run time, repeatedly concatenated with itself."""
    model = Model()
    one = model.integers(1)
    tensors = [tensor((1,), INT32), one, tensor((1,), INT32), model.constant(np.array(2, np.float32))]
    operators = [
        model.operator("ADD", (0, 1), (2,), Table("AddOptions")),
        model.operator("FILL", (2, 3), (4,)),
    ]
    for i in range(times):
        operators.append(model.operator("CONCATENATION", (4 + i, 4 + i), (5 + i,), Table("ConcatenationOptions")))
    return model.file([*tensors, *(tensor((1,)) for _ in range(times + 1))], operators)


@CLASSES.sized(1000, 400_000, 2_000_000)
def tiled(times: int) -> bytes:
    """One element, tiled."""
    model = Model()
    tensors = [tensor((1, 1)), model.integers(times, 1000)]
    return _one("TILE", tensors, [tensor((times, 1000))], None, model)


@CLASSES.sized(100, 10000, 30000)
def resized(side: int) -> bytes:
    """An image of one pixel, enlarged."""
    model = Model()
    tensors = [tensor((1, 1, 1, 3)), model.integers(side, side)]
    return _one("RESIZE_BILINEAR", tensors, [tensor((1, side, side, 3))], Table("ResizeBilinearOptions"), model)


@CLASSES.sized(100, 10000, 20000)
def padded(side: int) -> bytes:
    """One element with huge padding on all sides."""
    model = Model()
    tensors = [tensor((1, 1)), model.constant(np.full((2, 2), side, np.int32))]
    return _one("PAD", tensors, [tensor((2 * side + 1,) * 2)], Table("PadOptions"), model)


@CLASSES.sized(100, 400_000, 2_000_000)
def hot(size: int) -> bytes:
    """One-hot vectors of huge depth."""
    model = Model()
    numbers = [model.constant(np.array(n, np.int32)) for n in (size,)]
    ends = [model.constant(np.array(n, np.float32)) for n in (1, 0)]
    inputs = [tensor((1000,), INT32), *numbers, *ends]
    return _one("ONE_HOT", inputs, [tensor((1000, size))], Table("OneHotOptions", axis=-1), model)


@CLASSES.sized(100, 10000, HUGE)
def pooled(side: int) -> bytes:
    """Windows far larger than the image."""
    model = Model()
    options = Table("Pool2DOptions", padding=0, filter_width=side, filter_height=side, stride_w=1, stride_h=1)
    return _one("MAX_POOL_2D", [tensor((1, 64, 64, 8))], [tensor((1, 64, 64, 8))], options, model)


@CLASSES.sized(100, 1 << 20, HUGE)
def strided(step: int) -> bytes:
    """A convolution with huge strides and dilations."""
    model = Model()
    weights = model.constant(np.ones((2, 3, 3, 2), np.float32))
    bias = model.constant(np.zeros(2, np.float32))
    options = Table(
        "Conv2DOptions", padding=0, stride_w=step, stride_h=step, dilation_w_factor=step, dilation_h_factor=step
    )
    return _one("CONV_2D", [tensor((1, 8, 8, 2)), weights, bias], [tensor((1, 1, 1, 2))], options, model)


@CLASSES.sized(10, 2000, 1 << 20)
def transposed(step: int) -> bytes:
    """A transposed convolution that spreads an image with huge strides."""
    model = Model()
    shape = model.integers(1, 8 * step, 8 * step, 1)
    weights = model.constant(np.ones((1, 2, 2, 1), np.float32))
    options = Table("TransposeConvOptions", padding=0, stride_w=step, stride_h=step)
    inputs = [tensor((1,), INT32), weights, tensor((1, 8, 8, 1))]
    tensors = [shape, *inputs[1:], tensor((1, 8 * step, 8 * step, 1))]
    return model.file(tensors, [model.operator("TRANSPOSE_CONV", (0, 1, 2), (3,), options)], (2,))


@CLASSES.sized(3, 1 << 20, HUGE)
def split(parts: int) -> bytes:
    """A split that declares many more parts than it has outputs."""
    model = Model()
    axis = model.constant(np.array(0, np.int32))
    tensors = [axis, tensor((4, 2)), tensor((2, 2)), tensor((2, 2))]
    options = Table("SplitOptions", num_splits=parts)
    return model.file(tensors, [model.operator("SPLIT", (0, 1), (2, 3), options)], (1,), (2, 3))


@CLASSES.sized(3, 1 << 20, HUGE)
def packed(parts: int) -> bytes:
    """A pack that declares many more parts than it has inputs."""
    model = Model()
    options = Table("PackOptions", values_count=parts, axis=0)
    return _one("PACK", [tensor((4,))], [tensor((1, 4))], options, model)


@CLASSES.sized(100, 100_000_000, HUGE)
def multinomial(samples: int) -> bytes:
    """Many random numbers."""
    model = Model()
    inputs = [tensor((1, 4)), model.constant(np.array(samples, np.int32))]
    return _one("MULTINOMIAL", inputs, [tensor((1, samples), INT64)], Table("RandomOptions", seed=1, seed2=2), model)


@CLASSES.sized(17, 1000, 1_000_000)
def high_rank(rank: int) -> bytes:
    """A reshape to a shape of very high rank."""
    model = Model()
    shape = model.constant(np.ones(rank, np.int32))
    return _one("RESHAPE", [tensor((1,)), shape], [tensor((1,))], None, model)


@CLASSES.sized(8, 16, 30)
def overflow(bits: int) -> bytes:
    """Dimensions whose product exceeds any machine integer."""
    shape = [1 << min(bits, 30)] * 8
    model = Model()
    dims = model.constant(np.array(shape, np.int32))
    return _one("BROADCAST_TO", [tensor((1,)), dims], [tensor(shape)], None, model)


@CLASSES.sized(100, 1 << 20, HUGE)
def empty_and_huge(size: int) -> bytes:
    """No elements: one dimension is 0, the others are huge."""
    model = Model()
    shape = (0, size, size)
    return _one("RELU", [tensor(shape)], [tensor(shape)], None, model)


@CLASSES.sized(100, 2000, 6000)
def products(side: int) -> bytes:
    """A chain of matrix products of computed matrices."""
    model = Model()
    dims = model.integers(side, side)
    square = tensor((side, side))
    tensors = [tensor((1, 1)), dims, *([square] * 11)]
    operators = [model.operator("BROADCAST_TO", (0, 1), (2,))]
    options = Table("BatchMatMulOptions")
    operators += [model.operator("BATCH_MATMUL", (2 + i, 2 + i), (3 + i,), options) for i in range(10)]
    return model.file(tensors, operators)


@CLASSES.sized(100, 20000, 100000)
def slow_elements(thousands: int) -> bytes:
    """Operations that run element by element on a large computed tensor."""
    model = Model()
    size = 1000 * thousands
    dims = model.integers(size)
    tensors = [tensor((1,)), dims, *(tensor((size,)) for _ in range(3)), tensor((size,), INT32)]
    operators = [
        model.operator("BROADCAST_TO", (0, 1), (2,)),
        model.operator("CUMSUM", (2, 6), (3,), Table("CumsumOptions")),
        model.operator("UNIQUE", (3,), (4, 5), Table("UniqueOptions", idx_out_type=INT32)),
    ]
    return model.file([*tensors, model.constant(np.array(0, np.int32))], operators, (0,), (4, 5))


@CLASSES.sized(100, 1 << 20, HUGE)
def detected(count: int) -> bytes:
    """A detection that may keep more boxes and classes than there are."""
    from flatbuffers import flexbuffers

    builder = flexbuffers.Builder()
    with builder.Map():
        for key in ("max_detections", "max_classes_per_detection", "num_classes", "detections_per_class"):
            builder.Int(key, count)
        for key in ("nms_score_threshold", "nms_iou_threshold", "x_scale", "y_scale", "h_scale", "w_scale"):
            builder.Float(key, 1.0)
        builder.Bool("use_regular_nms", True)
    model = Model()
    anchors = model.constant(np.ones((4, 4), np.float32))
    tensors = [tensor((1, 4, 4)), tensor((1, 4, 3)), anchors, *(tensor((1, 4)) for _ in range(4))]
    detect = model.operator(
        "TFLite_Detection_PostProcess", (0, 1, 2), (3, 4, 5, 6), custom_options=bytes(builder.Finish())
    )
    return model.file(tensors, [detect], (0, 1), (3, 4, 5, 6))
