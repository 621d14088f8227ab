"""Functions extracted from TensorFlow compute what TensorFlow computes. Skipped if TensorFlow is not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.ir import Array, CompileError, ModelError

tf = pytest.importorskip("tensorflow")

from onert.flow.tf import Extractor  # noqa: E402  (after the skip)

RNG = np.random.default_rng(6)


def computed(flow: myelin.Flow, name: str, inputs: dict[str, Array], result: str) -> Array:
    data = compiled(flow).cell(name).instance()
    for key, array in inputs.items():
        np.asarray(data.tensor(key))[...] = array
    data.compute()
    return np.array(data.tensor(result))


def test_the_second_program_of_myelin_s_guide_runs(tmp_path: Path) -> None:
    """The guide's classifier, on digits of 8 x 8 pixels, with TensorFlow's version 1 interface."""
    with np.load(Path(__file__).parents[2] / "docs" / "examples" / "digits_flow" / "digits.npz") as file:
        images, labels = file["images"].reshape(-1, 64) / np.float32(16), np.eye(10, dtype="f4")[file["labels"]]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [None, 64], name="x")
        W = v1.Variable(tf.zeros([64, 10]), name="W", use_resource=False)  # noqa: N806
        b = v1.Variable(tf.zeros([10]), name="b")
        y = tf.add(tf.matmul(x, W), b, name="y")
        y_ = v1.placeholder(tf.float32, [None, 10])
        cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
        train_step = v1.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
        sess.run(v1.global_variables_initializer())
        for step in range(300):
            rows = np.arange(100) + 100 * step % 1200
            sess.run(train_step, feed_dict={x: images[rows], y_: labels[rows]})
        flow = myelin.Flow()
        Extractor(sess, flow).add(flow.func("classifier"), [x], [y])
        flow.save(tmp_path / "digits.flow")
        expected = sess.run(y, feed_dict={x: images[-1:]})
        right = np.mean(sess.run(y, feed_dict={x: images[1347:]}).argmax(1) == labels[1347:].argmax(1))
    assert right > 0.9
    loaded = myelin.Flow()
    loaded.load(tmp_path / "digits.flow")
    assert [o.type for o in loaded.funcs["classifier"].ops if o.type != "Identity"] == ["MatMul", "Add"]
    assert (loaded.vars["x:0"].shape, loaded.vars["W:0"].shape, loaded.vars["b:0"].shape) == ([-1, 64], [64, 10], [10])
    assert loaded.vars["W:0"].data is not None
    found = computed(loaded, "classifier", {"x:0": images[-1:]}, "y:0")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_dimensions_of_tensorflow_version_1_are_understood() -> None:
    """In version 1 and after `disable_v2_behavior` dimensions are objects, and an unknown one is not None."""
    v1 = tf.compat.v1
    v1.disable_v2_tensorshape()
    try:
        with tf.Graph().as_default(), v1.Session() as sess:
            x = v1.placeholder(tf.float32, [None, 3], name="x")
            y = tf.multiply(x, 2.0, name="y")
            flow = myelin.Flow()
            Extractor(sess, flow).add(flow.func("f"), [x], [y])
    finally:
        v1.enable_v2_tensorshape()
    assert (flow.vars["x:0"].shape, flow.vars["y:0"].shape) == ([-1, 3], [-1, 3])


Body = Callable[[Any], Any]
WEIGHT = RNG.standard_normal((4, 5)).astype("f4")
BODIES: dict[str, Body] = {
    "a layer": lambda x: tf.nn.softmax(tf.nn.relu(x @ WEIGHT + 1.0)),
    "a bias": lambda x: tf.nn.bias_add(x @ WEIGHT, np.arange(5, dtype="f4")),
    "a transposed weight": lambda x: tf.matmul(x, WEIGHT.T.copy(), transpose_b=True),
    "functions of elements": lambda x: tf.exp(tf.sin(x)) / (tf.abs(x) + 1.0) - tf.tanh(x) * tf.sigmoid(x) ** 2.0,
    "comparisons": lambda x: tf.where(x > 0.5, x, tf.zeros_like(x)),
    "a smooth rectifier": lambda x: tf.nn.gelu(x - 0.5) + tf.math.erfc(x),
    "a leaking rectifier": lambda x: tf.nn.leaky_relu(x - 0.5, 0.3),
    "bounds": lambda x: tf.nn.relu6(tf.maximum(x * 8.0, 0.1)),
    "reductions": lambda x: tf.reduce_sum(x, 1, keepdims=True) + tf.reduce_max(x) + tf.reduce_prod(x, [0, 1]),
    "a mean": lambda x: tf.math.squared_difference(x, tf.reduce_mean(x, 1, keepdims=True)),
    "shapes": lambda x: tf.transpose(tf.reshape(tf.expand_dims(x, 1), [4, 3])) + tf.squeeze(tf.expand_dims(x, 0), 0),
    "parts": lambda x: tf.concat([*tf.split(x, 2, 1)[::-1], tf.slice(x, [0, 1], [3, 2])], 1),
    "rows": lambda x: tf.gather(x, [2, 0, 2]),
    "indices": lambda x: tf.argmax(x, 1, output_type=tf.int32),
    "casts": lambda x: tf.cast(tf.cast(x * 10, tf.int32), tf.float32) + tf.round(x),
    "a logarithm": lambda x: tf.nn.log_softmax(x) + tf.math.log(x + 2.0),
}


def _loop(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y) * tf.cast(i + 1, tf.float32)), (0, x))[1]


@tf.function
def _called(x: Any) -> Any:
    return tf.nn.relu(x - 0.5) * 2.0


@tf.function
def _outer(x: Any) -> Any:
    return _called(x) @ WEIGHT


CALLS: dict[str, Body] = {
    "a function": lambda x: _called(x) + _called(x + 1.0),
    "a function in a function": lambda x: _outer(x) + 1.0,
    "a loop": _loop,
    "a branch": lambda x: tf.cond(tf.constant(2) > 1, lambda: x * 2.0, lambda: x),
    "a list of steps": lambda x: tf.scan(lambda a, row: a * 0.5 + row, x, tf.zeros([4])),
    "a part": lambda x: x[1:, -2] + x[:2, 1, tf.newaxis][0] + x[..., -1][1:],
    "rows apart and together": lambda x: tf.stack(tf.unstack(x, axis=1)[::-1], axis=0),
    "uneven parts": lambda x: tf.concat(tf.split(x, [1, 3], 1)[::-1], 1),
    "from the end": lambda x: tf.reverse(x, [0, 1]),
    "margins": lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=3.0),
    "zeros and ones": lambda x: x + tf.zeros_like(x) + tf.ones_like(x) + tf.fill([3, 1], 0.5),
    "a sum of several": lambda x: tf.add_n([x, x, x]),
    "an equation": lambda x: tf.einsum("ab,cb->ca", x, WEIGHT.T.copy()),
}


@pytest.mark.parametrize("name", [*BODIES, *CALLS])
def test_an_extracted_function_computes_the_same_as_in_tensorflow(name: str) -> None:
    """Function calls are inlined, loops unrolled, and lists of tensors split into their items."""
    function = tf.function((BODIES | CALLS)[name]).get_concrete_function(tf.TensorSpec([3, 4], name="x"))
    x = RNG.random((3, 4)).astype("f4")
    flow = myelin.Flow()
    Extractor(function, flow).add(flow.func("f"))
    found = computed(flow, "f", {"x:0": x}, function.outputs[0].name)
    np.testing.assert_allclose(found, function(tf.constant(x)).numpy(), rtol=1e-5, atol=1e-6)


def _layers() -> dict[str, tuple[list[Any], tuple[int, ...]]]:
    layer = tf.keras.layers
    return {
        "dense": ([layer.Dense(8, activation="relu"), layer.BatchNormalization(), layer.Dense(3, "softmax")], (4,)),
        "convolutions": (
            [
                layer.Conv2D(4, 3, activation="relu"),
                layer.MaxPooling2D(),
                layer.BatchNormalization(),
                layer.DepthwiseConv2D(3, padding="same"),
                layer.AveragePooling2D(2, strides=1),
                layer.Flatten(),
                layer.Dense(3, "softmax"),
            ],
            (8, 8, 1),
        ),
        "LSTM": ([layer.LSTM(6), layer.Dense(3, "softmax")], (5, 4)),
        "both ways": ([layer.Bidirectional(layer.GRU(4, return_sequences=True)), layer.LSTM(3)], (3, 4)),
    }


@pytest.mark.parametrize("batch", [1, None])
@pytest.mark.parametrize("name", ["dense", "convolutions", "LSTM", "both ways"])
def test_an_extracted_keras_model_computes_the_same(name: str, batch: int | None, tmp_path: Path) -> None:
    layers, shape = _layers()[name]
    model = tf.keras.Sequential([tf.keras.Input(shape), *layers])
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(
        tf.TensorSpec((batch, *shape), name="x")
    )
    flow, loaded = myelin.Flow(), myelin.Flow()
    Extractor(function, flow).add(flow.func("model"))
    flow.save(tmp_path / "model.flow")
    loaded.load(tmp_path / "model.flow")
    x = RNG.random((1, *shape)).astype("f4")
    found = computed(loaded, "model", {"x:0": x}, function.outputs[0].name)
    np.testing.assert_allclose(found, function(tf.constant(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_a_loop_whose_condition_depends_on_an_input_is_rejected() -> None:
    def body(x: Any) -> Any:
        return tf.while_loop(lambda y: tf.reduce_sum(y) < 10.0, lambda y: (y * 2.0,), (x,))[0]

    function = tf.function(body).get_concrete_function(tf.TensorSpec([3], name="x"))
    flow = myelin.Flow()
    with pytest.raises(ModelError, match=r"the condition of 'while' depends on an input, expected a constant"):
        Extractor(function, flow).add(flow.func("f"))


def test_captured_variables_of_a_concrete_function_become_constants() -> None:
    weight = tf.Variable(WEIGHT, name="weight")

    def body(x: Any) -> Any:
        return tf.nn.relu(x @ weight) + tf.constant(2.0)

    function = tf.function(body).get_concrete_function(tf.TensorSpec([None, 4], name="x"))
    flow = myelin.Flow()
    Extractor(function, flow).add(flow.func("f"))
    x = RNG.random((1, 4)).astype("f4")
    found = computed(flow, "f", {"x:0": x}, function.outputs[0].name)
    np.testing.assert_allclose(found, np.maximum(x @ WEIGHT, 0) + 2, rtol=1e-5)
    constants = [v for v in flow.vars.values() if v.data is not None and v.shape == [4, 5]]
    assert len(constants) == 1


def test_an_operation_unknown_to_flows_keeps_its_type_and_attributes() -> None:
    function = tf.function(tf.nn.elu).get_concrete_function(tf.TensorSpec([3], name="x"))
    flow = myelin.Flow()
    Extractor(function, flow).add(flow.func("f"))
    elu = next(o for o in flow.ops.values() if o.type == "Elu")
    assert elu.attrs["T"] == "float32"
    with pytest.raises(CompileError, match=r"there is no kernel for .* Elu"):
        myelin.Compiler().compile(flow)


def test_a_placeholder_that_is_not_an_input_is_rejected() -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as sess:
        x, z = (v1.placeholder(tf.float32, [2], name=name) for name in "xz")
        flow = myelin.Flow()
        with pytest.raises(ModelError, match="depend on 'z', a placeholder that is not an input"):
            Extractor(sess, flow).add(flow.func("f"), [x], [x + z])
