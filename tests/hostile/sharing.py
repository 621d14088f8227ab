"""Small files whose objects refer to the same bytes many times."""

from __future__ import annotations

import numpy as np

from hostile.writer import FLOAT32, INT4, STRING, Classes, Model, Table, integers, tensor

CLASSES = Classes()
DETECTION = "TFLite_Detection_PostProcess"


def flexible(depth: int, wide: int = 4) -> bytes:
    """FlexBuffers: a map whose only value is a vector of vectors of vectors, each with the same child `wide` times."""
    out = bytearray(b"\x00")  # an empty string as the innermost vector's element
    out += bytes((0,))
    at, packed = len(out), 0x28  # an empty vector: its size byte precedes it
    out += b""
    for _ in range(depth):
        size = 4
        out += bytes(-len(out) % size)
        start = len(out)
        body = wide.to_bytes(4, "little")
        for index in range(wide):
            body += (start + 4 + 4 * index - at).to_bytes(4, "little")
        out += body + bytes((packed,)) * wide
        at, packed = start + 4, 0x2A  # a vector of four-byte elements
    key = len(out)
    out += b"a\x00"
    out += bytes(-len(out) % 4)
    keys = len(out) + 4
    out += (1).to_bytes(4, "little") + (keys - key).to_bytes(4, "little")
    out += (len(out) - keys).to_bytes(4, "little") + (4).to_bytes(4, "little") + (1).to_bytes(4, "little")
    values = len(out)
    out += (values - at).to_bytes(4, "little") + bytes((packed,))
    root = len(out)
    return bytes(out + (root - values).to_bytes(4, "little") + bytes((0x26, 4)))


@CLASSES.sized(6, 20, 2000)
def flexible_options(depth: int) -> bytes:
    """A detection whose custom options expand to 4 to the power of `depth` vectors."""
    model = Model()
    tensors = [tensor((1, 4, 4)), tensor((1, 4, 3)), model.constant(np.ones((4, 4), np.float32))]
    tensors += [tensor((1, 4, 4)), tensor((1, 4)), tensor((1, 4)), tensor((1,))]
    return model.file(
        tensors, [model.operator(DETECTION, (0, 1, 2), (3, 4, 5, 6), custom_options=flexible(depth))], (0, 1)
    )


def _relus(tensors: list[Table], model: Model) -> bytes:
    """A chain through all tensors."""
    operators = [model.operator("RELU", (i,), (i + 1,)) for i in range(len(tensors) - 1)]
    return model.file(tensors, operators)


@CLASSES.sized(100, 2000, 20000)
def one_name(count: int) -> bytes:
    """`count` tensors that share one name of 50 * `count` letters."""
    name = "n" * (50 * count)
    return _relus([tensor((1, 8), name=name) for _ in range(count)], Model())


@CLASSES.sized(100, 2000, 20000)
def one_name_of_a_broken_tensor(count: int) -> bytes:
    """The last tensor, with a long name, is malformed; its subgraph's name is long too."""
    name = "n" * (50 * count)
    model = Model()
    tensors = [tensor((1, 8), name=name) for _ in range(count)] + [tensor((-1, 8), name=name)]
    return model.file(tensors, [], name=name)


@CLASSES.sized(30, 300, 3000)
def same_subgraph(count: int) -> bytes:
    """A subgraph of `count` tensors and operators, referred to `count` times."""
    model = Model()
    tensors = [tensor((1, 8)) for _ in range(count)]
    graph = model.graph(tensors, [model.operator("RELU", (i,), (i + 1,)) for i in range(count - 1)])
    model.subgraphs.extend([graph] * (count - 1))
    return model.done()


@CLASSES.sized(100, 2000, 20000)
def same_operators(count: int) -> bytes:
    """One operator with `count` inputs, referred to `count` times."""
    model = Model()
    operator = model.operator("ADD_N", [0] * count, (1,))
    return model.file([tensor(), tensor()], [operator] * count)


@CLASSES.sized(100, 1000, 10000)
def same_inputs(count: int) -> bytes:
    """`count` additions that share one vector of `count` inputs."""
    model = Model()
    many = integers(*([0] * count))
    operators = []
    for index in range(count):
        operators.append(model.operator("ADD_N", (), (index + 1,)))
        operators[-1].fields["inputs"] = many
    return model.file([tensor() for _ in range(count + 1)], operators)


@CLASSES.sized(12, 1000, 20000)
def same_shape(count: int) -> bytes:
    """Tensors that share a shape of `count` dimensions, all dynamic in a shared signature."""
    model = Model()
    shape, signature = integers(*([1] * count)), integers(*([-1] * count))
    tensors = [Table("Tensor", shape=shape, type=FLOAT32, buffer=0, shape_signature=signature) for _ in range(count)]
    return _relus(tensors, model)


@CLASSES.sized(100, 2000, 20000)
def same_scales(count: int) -> bytes:
    """Constants that share `count` scales."""
    model = Model()
    scales, zeros = np.full(count, 0.5, np.float32), np.zeros(count, np.int64)
    quantization = Table("QuantizationParameters", scale=scales, zero_point=zeros, quantized_dimension=1)
    tensors = [tensor((0, count), 9, 0, quantization=quantization) for _ in range(count)]
    return _relus(tensors, model)


@CLASSES.sized(100, 2000, 20000)
def same_strings(count: int) -> bytes:
    """Constants of `count` strings in one buffer."""
    model = Model()
    ends = np.full(count + 1, 4 * (count + 2), np.int32)
    buffer = model.buffer(integers(count).tobytes() + ends.tobytes())
    tensors = [tensor((count,), STRING, buffer) for _ in range(count)]
    return model.file([tensor(), tensor(), *tensors], [model.operator("RELU", (0,), (1,))], (0,), (1,))


@CLASSES.sized(100, 2000, 20000)
def same_sparsity(count: int) -> bytes:
    """Constants that share the indices of a compressed dimension."""
    model = Model()
    numbers = Table("Int32Vector", values=np.arange(count, dtype=np.int32))
    segments = Table("Int32Vector", values=integers(0, count))
    kinds = {"array_segments_type": 1, "array_indices_type": 1}
    level = Table("DimensionMetadata", format=1, array_segments=segments, array_indices=numbers, **kinds)
    sparsity = Table("SparsityParameters", traversal_order=integers(0), dim_metadata=[level])
    buffer = model.buffer(np.ones(count, np.float32))
    tensors = [tensor((count,), FLOAT32, buffer, sparsity=sparsity) for _ in range(count)]
    return model.file([tensor(), tensor(), *tensors], [model.operator("RELU", (0,), (1,))], (0,), (1,))


@CLASSES.sized(100, 2000, 20000)
def same_options(count: int) -> bytes:
    """Reshapes that share a new shape of `count` dimensions."""
    model = Model()
    options = Table("ReshapeOptions", new_shape=integers(*([1] * count)))
    operators = [model.operator("RESHAPE", (i,), (i + 1,), options) for i in range(count)]
    return model.file([tensor() for _ in range(count + 1)], operators)


@CLASSES.sized(100, 2000, 20000)
def same_custom_options(count: int) -> bytes:
    """Custom operators that share their options, a hundred bytes for each."""
    model = Model()
    raw = bytes(100 * count)
    operators = [model.operator("Nobody", (i,), (i + 1,), custom_options=raw) for i in range(count)]
    return model.file([tensor() for _ in range(count + 1)], operators)


@CLASSES.sized(100, 2000, 20000)
def same_code(count: int) -> bytes:
    """Operator codes that share a long name, and an operator of each."""
    model = Model()
    code = Table("OperatorCode", builtin_code=32, deprecated_builtin_code=32, custom_code="c" * (50 * count))
    model.codes = [code] * count
    operators = [Table("Operator", opcode_index=i, inputs=integers(i), outputs=integers(i + 1)) for i in range(count)]
    return model.file([tensor() for _ in range(count + 1)], operators)


@CLASSES.sized(100, 2000, 20000)
def same_signature(count: int) -> bytes:
    """Signatures that share one list of identical inputs, and long names."""
    name = "s" * (20 * count)
    named = Table("TensorMap", name=name, tensor_index=0)
    sides = {"inputs": [named] * count, "outputs": [Table("TensorMap", name=name, tensor_index=1)] * count}
    definitions = [Table("SignatureDef", signature_key=name, subgraph_index=0, **sides) for _ in range(count)]
    model = Model(signature_defs=definitions)
    return model.file([tensor(), tensor()], [model.operator("RELU", (0,), (1,))])


@CLASSES.sized(100, 10000, 1000000)
def wrong_signature(count: int) -> bytes:
    """The signature names a missing output, in a model that lists one output many times."""
    wrong = Table("TensorMap", name="w" * count, tensor_index=7)
    model = Model(signature_defs=[Table("SignatureDef", signature_key="k" * count, outputs=[wrong])])
    return model.file([tensor(), tensor()], [model.operator("RELU", (0,), (1,))], outputs=[1] * count)


@CLASSES.sized(100, 9000, 90000)
def many_outputs(count: int) -> bytes:
    """One tensor that is listed as every output."""
    model = Model()
    return model.file([tensor(), tensor(name="y")], [model.operator("RELU", (0,), (1,))], outputs=[1] * count)


@CLASSES.sized(100, 2000, 20000)
def many_inputs(count: int) -> bytes:
    """Many inputs that all have one name."""
    model = Model()
    inputs = [tensor(name="x") for _ in range(count)]
    tensors = [*inputs, tensor()]
    return model.file(tensors, [model.operator("RELU", (0,), (count,))], range(count))


@CLASSES.sized(10, 100, 2000)
def same_buffer(count: int) -> bytes:
    """4-bit constants that unpack one shared buffer, all of them used."""
    model = Model()
    buffer = model.buffer(np.ones(50 * count, np.uint8))
    constants = [tensor((100 * count,), INT4, buffer) for _ in range(count)]
    tensors = [tensor((100 * count,), INT4), *constants, *(tensor((100 * count,), INT4) for _ in range(count))]
    operators = [
        model.operator("CONCATENATION", (0, 1 + i), (1 + count + i,), Table("ConcatenationOptions"))
        for i in range(count)
    ]
    return model.file(tensors, operators, (0,), range(1 + count, 1 + 2 * count))


def _one_stored() -> Table:
    """The sparsity of a dimension of any length whose first element alone is stored."""
    numbers, segments = (Table("Int32Vector", values=integers(*values)) for values in ((0,), (0, 1)))
    kinds = {"array_segments_type": 1, "array_indices_type": 1}
    level = Table("DimensionMetadata", format=1, array_segments=segments, array_indices=numbers, **kinds)
    return Table("SparsityParameters", traversal_order=integers(0), dim_metadata=[level])


@CLASSES.sized(100, 20000, 2000000)
def dense_from_sparse(size: int) -> bytes:
    """A constant with one stored element and `size` thousand elements in total."""
    model, sparsity = Model(), _one_stored()
    constant = tensor((1000 * size,), FLOAT32, model.buffer(np.ones(1, np.float32)), sparsity=sparsity)
    add = model.operator("ADD", (0, 1), (2,), Table("AddOptions"))
    return model.file([tensor((1,)), constant, tensor((1000 * size,))], [add])


@CLASSES.sized(10, 200, 2000)
def many_dense_from_sparse(count: int) -> bytes:
    """Sparse constants of a million elements each, added one after the other."""
    model, sparsity = Model(), _one_stored()
    buffer, size = model.buffer(np.ones(1, np.float32)), (1_000_000,)
    tensors = [tensor(size)]
    operators = []
    for at in range(count):
        tensors += [tensor(size, FLOAT32, buffer, sparsity=sparsity), tensor(size)]
        operators.append(model.operator("ADD", (2 * at, 2 * at + 1), (2 * at + 2,), Table("AddOptions")))
    return model.file(tensors, operators)
