"""Small files whose subgraphs call one another endlessly, deeply or repeatedly; and very long graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hostile.writer import BOOL, INT32, Classes, Model, Table, tensor

CLASSES = Classes()
_IF, _WHILE, _CALL = ("IfOptions", "WhileOptions", "CallOptions")


def _if(model: Model, inputs: Sequence[int], outputs: Sequence[int], then: int, otherwise: int) -> Table:
    options = Table(_IF, then_subgraph_index=then, else_subgraph_index=otherwise)
    return model.operator("IF", inputs, outputs, options)


def _while(model: Model, inputs: Sequence[int], outputs: Sequence[int], condition: int, body: int) -> Table:
    options = Table(_WHILE, cond_subgraph_index=condition, body_subgraph_index=body)
    return model.operator("WHILE", inputs, outputs, options)


def _call(model: Model, inputs: Sequence[int], outputs: Sequence[int], called: int) -> Table:
    return model.operator("CALL", inputs, outputs, Table(_CALL, subgraph=called))


@CLASSES.sized(20, 300, 5000)
def call_chain(depth: int) -> bytes:
    """Each subgraph calls the next."""
    model = Model()
    for at in range(depth):
        model.graph([tensor(), tensor()], [_call(model, (0,), (1,), at + 1)])
    return model.file([tensor(), tensor()], [model.operator("RELU", (0,), (1,))])


@CLASSES.sized(20, 300, 5000)
def if_chain(depth: int) -> bytes:
    """Each branch contains the next."""
    model = Model()
    ends = [tensor((1,), BOOL), tensor(), tensor()]
    for at in range(depth):
        model.graph(ends, [_if(model, (0, 0, 1), (2,), at + 1, depth)], (0, 1))
    return model.file(ends, [model.operator("RELU", (1,), (2,))], (0, 1))


@CLASSES.sized(4, 60, 3000)
def while_chain(depth: int) -> bytes:
    """Each loop's body is a loop."""
    model = Model()
    limit = model.integers(1)
    one = model.integers(1)
    ints = [tensor((1,), INT32), tensor((1,), INT32)]
    for at in range(depth):
        model.graph(ints, [_while(model, (0,), (1,), depth + 1, at + 1)])
    model.graph([ints[0], one, ints[1]], [model.operator("ADD", (0, 1), (2,), Table("AddOptions"))])
    return model.file([ints[0], limit, tensor((1,), BOOL)], [model.operator("LESS", (0, 1), (2,))])


@CLASSES.sized(4, 10, 40)
def if_tree(depth: int) -> bytes:
    """Two branches at each level, which lengthen the tensor by one and by two, so that no two shapes are equal."""
    model = Model()
    for at in range(depth):
        below = 2 * at + 1
        here = [tensor((1,), BOOL), tensor(), tensor()]
        for more in (1, 2) if at else (1,):
            pad = model.constant(np.array([[0, more]], np.int32))
            padded = model.operator("PAD", (1, 3), (4,), Table("PadOptions"))
            model.graph([*here, pad, tensor()], [padded, _if(model, (0, 0, 4), (2,), below, below + 1)], (0, 1), (2,))
    for _ in range(2):
        total = model.integers(0)
        summed = model.operator("SUM", (1, 3), (2,), Table("ReducerOptions", keep_dims=True))
        model.graph([tensor((1,), BOOL), tensor(), tensor(), total], [summed], (0, 1), (2,))
    return model.done()


@CLASSES.sized(3, 10, 60)
def call_tree(depth: int) -> bytes:
    """Each subgraph calls the next four times, with a different shape each."""
    model = Model()
    for at in range(depth):
        tensors, operators = [tensor()], []
        for number in range(4):
            last = len(tensors)
            source = 0 if number == 0 else last - 1
            tensors += [model.constant(np.array([[0, number + 1]], np.int32)), tensor(), tensor()]
            operators.append(model.operator("PAD", (source, last), (last + 1,), Table("PadOptions")))
            operators.append(_call(model, (last + 1,), (last + 2,), at + 1))
        model.graph(tensors, operators)
    return model.file([tensor(), tensor()], [model.operator("RELU", (0,), (1,))])


@CLASSES.sized(5, 20, 60)
def same_call_tree(depth: int) -> bytes:
    """Each subgraph calls the next twice, with the same shapes."""
    model = Model()
    for at in range(depth):
        calls = [_call(model, (0,), (1,), at + 1), _call(model, (1,), (2,), at + 1)]
        model.graph([tensor(), tensor(), tensor()], calls)
    return model.file([tensor(), tensor()], [model.operator("RELU", (0,), (1,))])


@CLASSES.sized(2, 8, 40)
def while_tree(depth: int) -> bytes:
    """Each loop's body contains two loops, whose rounds lengthen a tensor."""
    model = Model()
    ints = tensor((1,), INT32)
    limit, one = (model.integers(n) for n in (2, 1))
    for at in range(depth):
        pad = model.constant(np.array([[0, at + 1]], np.int32))
        operators = [
            _while(model, (0, 1), (2, 3), depth + 1, at + 1),
            model.operator("PAD", (3, 4), (5,), Table("PadOptions")),
            _while(model, (2, 5), (6, 7), depth + 1, at + 1),
        ]
        tensors = [ints, tensor(), ints, tensor(), pad, tensor(), ints, tensor()]
        model.graph(tensors, operators, (0, 1), (6, 7))
    add = model.operator("ADD", (0, 1), (2,), Table("AddOptions"))
    pad = model.constant(np.array([[1, 0]], np.int32))
    longer = model.operator("PAD", (3, 4), (5,), Table("PadOptions"))
    model.graph([ints, one, ints, tensor(), pad, tensor()], [add, longer], (0, 3), (2, 5))
    less = model.operator("LESS", (0, 1), (2,))
    return model.file([ints, limit, tensor((1,), BOOL), tensor()], [less], (0, 3), (2,))


@CLASSES.sized(10, 100, 1000)
def many_calls(count: int) -> bytes:
    """A graph that makes `count` calls to one that makes `count` calls to a third."""
    model = Model()
    for called in (1, 2):
        calls = [_call(model, (i,), (i + 1,), called) for i in range(count)]
        model.graph([tensor() for _ in range(count + 1)], calls)
    relus = [model.operator("TANH", (i,), (i + 1,)) for i in range(count)]
    return model.file([tensor() for _ in range(count + 1)], relus)


@CLASSES.sized(5, 50, 500)
def many_shapes(count: int) -> bytes:
    """A subgraph of `count` operations that is called with `count` shapes."""
    model = Model()
    tensors, operators = [tensor()], []
    for number in range(count):
        at = len(tensors)
        tensors += [model.constant(np.array([[0, number + 1]], np.int32)), tensor(), tensor()]
        operators.append(model.operator("PAD", (0, at), (at + 1,), Table("PadOptions")))
        operators.append(_call(model, (at + 1,), (at + 2,), 1))
    model.graph(tensors, operators)
    kinds = ("TANH", "LOGISTIC", "EXP", "SIN")
    inner = [model.operator(kinds[i % 4], (i,), (i + 1,)) for i in range(count)]
    return model.file([tensor() for _ in range(count + 1)], inner)


def _loop(model: Model, bound: int, body: int) -> None:
    """Add a condition that holds below `bound`, and a body that counts."""
    ints = tensor((1,), INT32)
    add = model.operator("ADD", (0, 1), (2,), Table("AddOptions"))
    one, limit = (model.integers(n) for n in (1, bound))
    model.graph([ints, limit, tensor((1,), BOOL)], [model.operator("LESS", (0, 1), (2,))])
    model.graph([ints, one, ints], [add])


@CLASSES.sized(1000, 1 << 20, (1 << 31) - 1)
def long_loop(bound: int) -> bytes:
    """A loop of many rounds that only count."""
    model = Model()
    ints = tensor((1,), INT32)
    model.graph([ints, ints], [_while(model, (0,), (1,), 1, 2)])
    _loop(model, bound, 2)
    return model.done()


@CLASSES.sized(1, 1000, 1_000_000)
def endless_loop(size: int) -> bytes:
    """A loop that runs forever on `size` elements, which change in each round."""
    model = Model()
    model.graph([tensor((size,)), tensor((size,))], [_while(model, (0,), (1,), 1, 2)])
    zero = model.integers(0)
    high = model.constant(np.array(9e30, np.float32))
    least = model.operator("REDUCE_MIN", (0, 1), (2,), Table("ReducerOptions"))
    less = model.operator("LESS", (2, 3), (4,))
    model.graph([tensor((size,)), zero, tensor(()), high, tensor((), BOOL)], [least, less], (0,), (4,))
    return model.file([tensor((size,)), tensor((size,))], [model.operator("COS", (0,), (1,))])


@CLASSES.sized(1, 2, 20)
def loops_in_loops(depth: int) -> bytes:
    """Nested loops of a hundred thousand rounds each; the innermost changes what all of them carry."""
    model = Model()
    ints = tensor((1,), INT32)
    one, zero = (model.integers(n) for n in (1, 0))
    limit = model.integers(100_000)
    add = Table("AddOptions")
    model.graph([ints, zero, ints, ints], [_while(model, (1, 0), (2, 3), depth + 2, 1)])
    for at in range(1, depth + 1):
        operators = [
            _while(model, (2, 1), (3, 4), depth + 2, at + 1),
            model.operator("ADD", (0, 5), (6,), add),
        ]
        model.graph([ints, ints, zero, ints, ints, one, ints], operators, (0, 1), (6, 4))
    operators = [model.operator("ADD", (0, 2), (3,), add), model.operator("ADD", (1, 0), (4,), add)]
    model.graph([ints, ints, one, ints, ints], operators, (0, 1), (3, 4))
    return model.file([ints, ints, limit, tensor((1,), BOOL)], [model.operator("LESS", (0, 2), (3,))], (0, 1), (3,))


@CLASSES.sized(5, 25, 60)
def growing_loop(rounds: int) -> bytes:
    """A tensor that doubles its length in each round."""
    model = Model()
    ints, many = tensor((1,), INT32), tensor((1,))
    limit, one = (model.integers(n) for n in (rounds, 1))
    model.graph([ints, many, ints, many], [_while(model, (0, 1), (2, 3), 1, 2)], (0, 1), (3,))
    less = model.operator("LESS", (0, 1), (2,))
    model.graph([ints, limit, tensor((1,), BOOL), many], [less], (0, 3), (2,))
    add = model.operator("ADD", (0, 1), (2,), Table("AddOptions"))
    twice = model.operator("CONCATENATION", (3, 3), (4,), Table("ConcatenationOptions"))
    return model.file([ints, one, ints, many, many], [add, twice], (0, 3), (2, 4))


@CLASSES.sized(100, 1000, 20000)
def long_chain(count: int) -> bytes:
    """A chain of operations of alternating kinds."""
    model = Model()
    kinds = ("TANH", "LOGISTIC", "EXP", "SIN", "NEG")
    operators = [model.operator(kinds[i % len(kinds)], (i,), (i + 1,)) for i in range(count)]
    return model.file([tensor((8,)) for _ in range(count + 1)], operators)


@CLASSES.sized(100, 1000, 20000)
def long_chain_backwards(count: int) -> bytes:
    """A chain of operations, stored last to first."""
    model = Model()
    operators = [model.operator("TANH", (i,), (i + 1,)) for i in reversed(range(count))]
    return model.file([tensor((8,)) for _ in range(count + 1)], operators)


@CLASSES.sized(100, 1000, 20000)
def wide_graph(count: int) -> bytes:
    """`count` operations on one input, and one that adds their results."""
    model = Model()
    operators = [model.operator("TANH", (0,), (i + 1,)) for i in range(count)]
    operators.append(model.operator("ADD_N", range(1, count + 1), (count + 1,)))
    return model.file([tensor((8,)) for _ in range(count + 2)], operators)


@CLASSES.sized(100, 1000, 20000)
def reshapes(count: int) -> bytes:
    """Reshapes of reshapes, and transposes of transposes."""
    model = Model()
    order = model.integers(1, 0)
    tensors = [tensor((2, 3) if i % 2 else (3, 2)) for i in range(count + 1)]
    operators = []
    for i in range(count):
        if i % 4 < 2:
            operators.append(model.operator("TRANSPOSE", (i, count + 1), (i + 1,)))
        else:
            shape = np.array(tensors[i + 1].fields["shape"], np.int32)
            operators.append(model.operator("RESHAPE", (i,), (i + 1,), Table("ReshapeOptions", new_shape=shape)))
    return model.file([*tensors, order], operators, (0,), (count,))


@CLASSES.sized(5, 50, 500)
def different_layers(count: int) -> bytes:
    """Convolutions of which no two have the same shape."""
    model = Model()
    tensors, operators = [tensor((1, 9, 9, 3))], []
    channels = 3
    for i in range(count):
        at, out, side = len(tensors), 3 + (7 * i) % 13, 1 + i % 5
        weights = model.constant(np.full((out, side, side, channels), 0.01, np.float32))
        bias = model.constant(np.zeros(out, np.float32))
        tensors += [weights, bias, tensor((1, 9, 9, out))]
        options = Table("Conv2DOptions", padding=0, stride_w=1, stride_h=1)
        source = at - 1
        operators.append(model.operator("CONV_2D", (source, at, at + 1), (at + 2,), options))
        channels = out
    return model.file(tensors, operators)
