"""Files whose shapes are placeholders: shapes are determined once the caller provides them, in every possible way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from model_writer import Graph, Model, interpreter

import onert
from onert.frontend.tflite_schema.custom_ops import CUSTOM_OPS
from onert.ir import Array, CompileError, DType, ExecutionError, ModelError

F32 = DType.FLOAT32


def floats(*shape: int) -> Array:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def placeholder(graph: Graph, signature: Sequence[int], *, given: bool) -> int:
    """A tensor (an input if `given`) whose dynamic dimensions are 1 in its declared shape."""
    shape = [1 if d < 0 else d for d in signature]
    index = graph.input(F32, shape) if given else graph.tensor(F32, shape)
    graph.table.tensors[index].shapeSignature = list(signature)
    graph.table.tensors[index].hasRank = True
    return index


@frozen(eq=False)
class Trial:
    """Operators that reject the placeholder shapes, and inputs that they accept."""

    name: str
    signatures: tuple[tuple[int, ...], ...]
    write: Callable[[Graph, list[int]], int]
    inputs: tuple[Array, ...]


def _chain(code: str, options: Any, *more: Array) -> Callable[[Graph, list[int]], int]:
    """One operator on all inputs followed by constants; its result is a placeholder too."""

    def write(graph: Graph, xs: list[int]) -> int:
        y = placeholder(graph, (-1, -1), given=False)
        graph.operator(code, [*xs, *(graph.constant(a) for a in more)], [y], options)
        return y

    return write


def _convolution(graph: Graph, xs: list[int]) -> int:
    y = placeholder(graph, (-1, -1, -1, 2), given=False)
    operands = [*xs, graph.constant(floats(2, 3, 3, 3)), graph.constant(floats(2))]
    graph.operator("CONV_2D", operands, [y], ("Conv2DOptions", {"padding": 1, "strideW": 1, "strideH": 1}))
    return y


def _split(graph: Graph, xs: list[int]) -> int:
    parts = [placeholder(graph, (-1, -1), given=False) for _ in range(2)]
    graph.operator("SPLIT", [graph.constant(ints(1)), *xs], parts, ("SplitOptions", {"numSplits": 2}))
    y = placeholder(graph, (-1, -1), given=False)
    graph.operator("SUB", parts, [y], ("SubOptions", {}))
    return y


def _within(graph: Graph, xs: list[int]) -> int:
    """A reshape with an inferred dimension, and a slice that does not fit the placeholder's result."""
    middle, y = (placeholder(graph, (-1, -1), given=False) for _ in range(2))
    graph.operator("RESHAPE", [*xs, graph.constant(ints(-1, 2))], [middle], ("ReshapeOptions", {}))
    begin, size = graph.constant(ints(1, 1)), graph.constant(ints(2, 1))
    graph.operator("SLICE", [middle, begin, size], [y], ("SliceOptions", {}))
    return y


def _squeezed(graph: Graph, xs: list[int]) -> int:
    """The rank of the result depends on the shapes."""
    y = placeholder(graph, (-1, -1), given=False)
    graph.operator("SQUEEZE", xs, [y], ("SqueezeOptions", {}))
    out = placeholder(graph, (-1, -1), given=False)
    graph.operator("FULLY_CONNECTED", [y, graph.constant(floats(3, 4))], [out], ("FullyConnectedOptions", {}))
    return out


_JOIN = ("ConcatenationOptions", {"axis": 1})
TRIALS = [
    Trial("a window larger than the picture", ((-1, -1, -1, 3),), _convolution, (floats(2, 5, 4, 3),)),
    Trial("parts of one", ((-1, -1),), _split, (floats(3, 4),)),
    Trial("parts of one column", ((2, -1),), _split, (floats(2, 6),)),
    Trial(
        "features",
        ((-1, -1),),
        _chain("FULLY_CONNECTED", ("FullyConnectedOptions", {"keepNumDims": True}), floats(3, 4)),
        (floats(5, 4),),
    ),
    Trial("beside a constant", ((-1, -1),), _chain("CONCATENATION", _JOIN, floats(3, 2)), (floats(3, 4),)),
    Trial(
        "two inputs", ((-1, -1), (-1, 2)), _chain("CONCATENATION", _JOIN, floats(3, 2)), (floats(3, 4), floats(3, 2))
    ),
    Trial("indices", ((-1, -1),), _chain("GATHER", ("GatherOptions", {"axis": 1}), ints(3, 0)), (floats(2, 4),)),
    Trial(
        "a product",
        ((-1, -1), (-1, 5)),
        _chain("BATCH_MATMUL", ("BatchMatMulOptions", {})),
        (floats(3, 4), floats(4, 5)),
    ),
    Trial("tensors within the graph", ((-1, -1),), _within, (floats(3, 4),)),
    Trial("a rank that depends", ((-1, 1, -1),), _squeezed, (floats(2, 1, 4),)),
    Trial("a broadcast", ((-1, -1),), _chain("BROADCAST_TO", None, ints(3, 4)), (floats(3, 1),)),
]
REFUSED = [t for t in TRIALS if t.name not in ("a broadcast", "a product", "a rank that depends")]
"""The trials that LiteRT refuses to allocate with the file's shapes."""


def model_of(trial: Trial) -> bytes:
    model = Model()
    graph = model.graph()
    xs = [placeholder(graph, signature, given=True) for signature in trial.signatures]
    graph.outputs(trial.write(graph, xs))
    model.signature("serve", graph)
    return model.done()


def litert(model: bytes, inputs: Sequence[Array]) -> Array:
    found = interpreter.Interpreter(
        model_content=model, experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    return _interpreted(found, inputs)


def _interpreted(found: Any, inputs: Sequence[Array]) -> Array:
    for detail, array in zip(found.get_input_details(), inputs, strict=True):
        found.resize_tensor_input(detail["index"], array.shape)
    found.allocate_tensors()
    for detail, array in zip(found.get_input_details(), inputs, strict=True):
        found.set_tensor(detail["index"], array)
    found.invoke()
    out: Array = found.get_tensor(found.get_output_details()[0]["index"])
    return out


def _by_arrays(model: bytes, inputs: Sequence[Array]) -> Array:
    return next(iter(onert.Execution(onert.compile(onert.load(model))).run(inputs).values()))


def _by_options(model: bytes, inputs: Sequence[Array]) -> Array:
    program = onert.compile(onert.load(model), input_shapes={i: a.shape for i, a in enumerate(inputs)})
    assert [info.shape for info in program.inputs] == [a.shape for a in inputs]
    return next(iter(onert.Execution(program).run(inputs).values()))


def _by_set_input_shape(model: bytes, inputs: Sequence[Array]) -> Array:
    execution = onert.Execution(onert.compile(onert.load(model)))
    for at, array in enumerate(inputs):
        execution.set_input_shape(at, array.shape)
    assert [info.shape for info in execution.program.inputs] == [a.shape for a in inputs]
    return _executed(execution, inputs)


def _by_set_input(model: bytes, inputs: Sequence[Array]) -> Array:
    return _executed(onert.Execution(onert.compile(onert.load(model))), inputs)


def _executed(execution: onert.Execution, inputs: Sequence[Array]) -> Array:
    for at, array in enumerate(inputs):
        execution.set_input(at, array)
    execution.execute()
    return execution.get_output(0)


def _by_interpreter(model: bytes, inputs: Sequence[Array]) -> Array:
    return _interpreted(onert.Interpreter(model_content=model), inputs)


def _by_signature(model: bytes, inputs: Sequence[Array]) -> Array:
    runner = onert.Interpreter(model_content=model).get_signature_runner("serve")
    return next(iter(runner(**{f"t{i}": a for i, a in enumerate(inputs)}).values()))


WAYS = (_by_arrays, _by_options, _by_set_input_shape, _by_set_input, _by_interpreter, _by_signature)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("trial", TRIALS, ids=lambda t: t.name)
def test_shapes_are_determined_once_the_caller_provides_them(
    trial: Trial, way: Callable[[bytes, Sequence[Array]], Array]
) -> None:
    model = model_of(trial)
    np.testing.assert_array_equal(way(model, trial.inputs), litert(model, trial.inputs))


@pytest.mark.parametrize("trial", REFUSED, ids=lambda t: t.name)
def test_placeholder_shapes_are_unknown_and_nothing_is_allocated_before_the_caller_sets_them(trial: Trial) -> None:
    model = model_of(trial)
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, [np.ones([1 if d < 0 else d for d in s], np.float32) for s in trial.signatures])
    with pytest.raises(RuntimeError):
        onert.Interpreter(model_content=model).allocate_tensors()
    program = onert.compile(onert.load(model))
    assert [info.shape for info in program.inputs] == [tuple(None if d < 0 else d for d in s) for s in trial.signatures]
    details = onert.Interpreter(model_content=model).get_input_details()
    assert [list(d["shape_signature"]) for d in details] == [list(s) for s in trial.signatures]
    assert [list(d["shape"]) for d in details] == [[1 if d < 0 else d for d in s] for s in trial.signatures]


@pytest.mark.parametrize("way", [_by_set_input, _by_arrays], ids=lambda way: way.__name__)
def test_one_execution_accepts_different_shapes_in_turn(way: Any) -> None:
    trial = next(t for t in TRIALS if t.name == "a product")
    model = model_of(trial)
    execution = onert.Execution(onert.compile(onert.load(model)))
    for rows, depth in ((3, 4), (2, 7), (1, 1), (3, 4)):
        inputs = [floats(rows, depth), floats(depth, 5)]
        if way is _by_arrays:
            (found,) = execution.run(inputs).values()
        else:
            for at, array in enumerate(inputs):
                execution.set_input(at, array)
            execution.execute()
            found = execution.get_output(0)
        np.testing.assert_array_equal(found, inputs[0] @ inputs[1])


def test_incompatible_shapes_are_refused_with_the_operation() -> None:
    model = model_of(next(t for t in TRIALS if t.name == "a product"))
    execution = onert.Execution(onert.compile(onert.load(model)))
    with pytest.raises(CompileError, match=r"operation 0 BATCH_MATMUL.*expected equal depths, not 4 and 3"):
        execution.run([floats(2, 4), floats(3, 5)])
    execution.set_input(0, floats(2, 4))
    execution.set_input(1, floats(3, 5))
    with pytest.raises(ExecutionError, match=r"no value is given for input.*expected equal depths, not 4 and 3"):
        execution.execute()


def test_a_dimension_that_the_file_fixes_cannot_change() -> None:
    model = model_of(next(t for t in TRIALS if t.name == "a product"))
    execution = onert.Execution(onert.compile(onert.load(model)))
    with pytest.raises(ExecutionError, match="is given shape"):
        execution.run([floats(2, 4), floats(4, 6)])


def test_a_model_that_no_shape_can_satisfy_is_refused_when_loaded() -> None:
    wrong = Trial(
        "", ((-1, 3),), _chain("FULLY_CONNECTED", ("FullyConnectedOptions", {"keepNumDims": True}), floats(3, 4)), ()
    )
    with pytest.raises(ModelError, match="operation 0 FULLY_CONNECTED: input has 3 in its last dimension"):
        onert.load(model_of(wrong))


def test_placeholder_results_of_a_custom_operator_are_of_unknown_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of what follows come from the operator's actual results."""
    monkeypatch.setitem(CUSTOM_OPS, "Twice", None)
    onert.custom_op("Twice")(lambda x, *, options: np.concatenate([x, x]))
    model = Model()
    graph = model.graph()
    x = graph.input(F32, (2, 4))
    middle = placeholder(graph, (-1, -1), given=False)
    graph.operator("Twice", [x], [middle], custom=b"\0")
    y = placeholder(graph, (-1, 3), given=False)
    graph.operator("FULLY_CONNECTED", [middle, graph.constant(floats(3, 4))], [y], ("FullyConnectedOptions", {}))
    graph.outputs(y)
    given = floats(2, 4)
    expected = np.concatenate([given, given]) @ floats(3, 4).T
    np.testing.assert_array_equal(_by_arrays(model.done(), [given]), expected)


def test_scalar_results_of_custom_operators_are_of_unknown_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Converters declare results without a known shape as scalars. Every missing operator is reported, also those that
    follow such a result; with functions for them the model runs."""
    model = Model()
    graph = model.graph()
    x = graph.input(F32, (2, 4))
    first, y, last = (graph.tensor(F32, ()) for _ in range(3))
    graph.operator("Double", [x], [first], custom=b"\0")
    graph.operator("FULLY_CONNECTED", [first, graph.constant(floats(3, 4))], [y], ("FullyConnectedOptions", {}))
    graph.operator("Negated", [y], [last], custom=b"\0")
    graph.outputs(last)
    data = model.done()
    with pytest.raises(CompileError, match=r"2 operations have no backend .* 0 Double: .* operation 2 Negated: "):
        onert.compile(onert.load(data))
    for name, function in (("Double", lambda x: np.concatenate([x, x])), ("Negated", np.negative)):
        monkeypatch.setitem(CUSTOM_OPS, name, None)
        onert.custom_op(name)(lambda x, *, options, function=function: function(x))
    given = floats(2, 4)
    expected = -(np.concatenate([given, given]) @ floats(3, 4).T)
    np.testing.assert_array_equal(_by_arrays(data, [given]), expected)


def test_a_placeholder_shape_that_the_operations_accept_is_used() -> None:
    """A model whose operations accept the file's shapes runs with them, and with the shapes of other arrays."""
    trial = Trial("", ((-1, -1),), _chain("ABS", ("AbsOptions", {})), (floats(2, 3),))
    program = onert.compile(onert.load(model_of(trial)))
    assert program.inputs[0].shape == (1, 1)
    execution = onert.Execution(program)
    for shape in ((1, 1), (2, 3), (1, 1)):
        (found,) = execution.run([floats(*shape)]).values()
        np.testing.assert_array_equal(found, floats(*shape))


def test_an_input_may_have_another_rank_if_the_operations_accept_it() -> None:
    """As in LiteRT, where an input may be resized to any shape."""
    model = Model()
    graph = model.graph()
    x, weight = graph.input(F32, (1, 4)), graph.constant(floats(3, 4))
    y = graph.tensor(F32, (1, 3))
    graph.operator("FULLY_CONNECTED", [x, weight], [y], ("FullyConnectedOptions", {"keepNumDims": True}))
    graph.outputs(y)
    given = floats(2, 5, 4)
    for way in (_by_set_input_shape, _by_options, _by_interpreter):
        np.testing.assert_array_equal(way(model.done(), [given]), litert(model.done(), [given]))
