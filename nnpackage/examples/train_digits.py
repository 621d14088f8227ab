"""Train the digit classifiers of this folder and write them as packages.

    python -m pip install 'onert-toolkit[examples,hdf5,images]'
    python nnpackage/examples/train_digits.py

The data are the 1797 handwritten digits of 8 by 8 pixels that scikit-learn carries (UCI ML hand-written digits). A
small convolutional network is trained with fixed seeds on three quarters of them, converted by TensorFlow's converter
to float32 and to full int8, and measured on the other quarter with TensorFlow's interpreter; its answers are also the
expected outputs of the packages' test cases.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 20
Array = np.ndarray[Any, Any]


def data() -> tuple[Array, Array, Array, Array]:
    """Images `[n, 8, 8, 1]` from 0 to 1 and labels, for training and for testing."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[..., None]
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    return train_x, train_y, test_x, test_y


def trained(images: Array, labels: Array) -> tf.keras.Model:
    """Two convolutions, one depthwise and one pointwise, global pooling, a dense layer: some 13,000 weights."""
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((8, 8, 1), batch_size=1, name="image"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.Conv2D(48, 1, activation="relu"),
            layers.MaxPool2D(2),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=32, epochs=60, verbose=0)
    return model


def converted(model: tf.keras.Model, images: Array | None) -> bytes:
    """The model as TFLite, batch 1: float32, or full int8 calibrated on `images`."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if images is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([image[None]] for image in images[:300])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


class Peer:
    """The converted model in TensorFlow's interpreter."""

    def __init__(self, content: bytes) -> None:
        self.interpreter = tf.lite.Interpreter(
            model_content=content, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
        )
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]

    def stored(self, image: Array) -> Array:
        """An image from 0 to 1 as the input stores it."""
        if self.input["dtype"] == np.float32:
            return image
        scale, zero = self.input["quantization"]
        return np.clip(np.round(image / scale) + zero, -128, 127).astype(np.int8)

    def run(self, stored: Array) -> Array:
        self.interpreter.set_tensor(self.input["index"], stored)
        self.interpreter.invoke()
        found: Array = self.interpreter.get_tensor(self.output["index"])
        return found


def write_tensors(folder: Path, name: str, array: Array) -> None:
    """One tensor as NumPy's and as ONE's form of a test case."""
    np.savez_compressed(folder / f"{name}.npz", **{"0": array})
    with h5py.File(folder / f"{name}.h5", "w") as file:
        file.create_group("value").create_dataset("0", data=array)


def write_package(name: str, content: bytes, images: Array, labels: Array) -> float:
    """The package; gives the accuracy on the images."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "metadata" / "tc").mkdir(parents=True)
    (folder / "samples").mkdir()
    model = f"{name}.tflite"
    (folder / model).write_bytes(content)
    manifest = {
        "major-version": "1",
        "minor-version": "2",
        "patch-version": "0",
        "configs": [],
        "models": [model],
        "model-types": ["tflite"],
    }
    (folder / "metadata" / "MANIFEST").write_text(json.dumps(manifest, indent=2) + "\n")
    peer = Peer(content)
    stored = [peer.stored(image[None]) for image in images]
    answers = [peer.run(image) for image in stored]
    write_tensors(folder / "metadata" / "tc", "input", stored[0])
    write_tensors(folder / "metadata" / "tc", "expected", answers[0])
    for digit in range(10):
        index = int(np.flatnonzero(labels == digit)[0])
        pixels = np.round(images[index, ..., 0] * 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "samples" / f"{digit}.png")
    (folder / "labels.txt").write_text("".join(f"{d}\n" for d in range(10)))
    accuracy = float(np.mean([int(np.argmax(a)) == y for a, y in zip(answers, labels, strict=True)]))
    (folder / "README.md").write_text(
        f"# {name}\n\nA classifier of handwritten digits of 8 by 8 pixels, made by `../train_digits.py`.\n\n"
        f"Test accuracy: {accuracy:.4f} on {len(labels)} images it was not trained on "
        f"(LiteRT's reference kernels).\n\nInput: `{peer.input['name']}`, {np.dtype(peer.input['dtype'])}"
        f"{list(peer.input['shape'])}, pixels from 0 to 1. `samples/` has one test image of each digit.\n"
    )
    return accuracy


def main() -> None:
    train_x, train_y, test_x, test_y = data()
    model = trained(train_x, train_y)
    for name, calibration in (("digits_float", None), ("digits_int8", train_x)):
        accuracy = write_package(name, converted(model, calibration), test_x, test_y)
        print(f"{name}: test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
