"""Train the LeNet of this folder and write it as TFLite, with an image of each digit to try it on.

    python -m pip install 'onert-toolkit[examples,images]'
    python docs/examples/lenet/train.py

The network has the shapes of Caffe's LeNet: 431,080 weights. The data are the 1797 handwritten digits of 8 by 8 pixels
that scikit-learn carries (UCI ML hand-written digits), brought to MNIST's form: 20 pixels high in a picture of 28,
white on black. Three quarters of them are trained on, turned, sheared, resized and moved a little in every epoch; the
accuracy on the other quarter is printed. Seeds are fixed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image
from scipy.ndimage import affine_transform, zoom
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 28
EPOCHS = 40
Array = np.ndarray[Any, Any]


def picture(digit: Array) -> Array:
    """8 by 8 pixels from 0 to 16 as 28 by 28 from 0 to 1, the strokes' edges sharpened."""
    large = np.clip(zoom(digit / 16, 20 / 8, order=3), 0, 1)
    sharp = np.clip((large - 0.35) * 2.2, 0, 1)
    return np.pad(sharp, 4).astype(np.float32)


def moved(image: Array, rng: np.random.Generator) -> Array:
    """The picture under a small random affine map, with strokes a little thinner or thicker."""
    turn, shear = rng.uniform(-0.2, 0.2), rng.uniform(-0.25, 0.25)
    sizes = rng.uniform(0.85, 1.25, 2)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ [[1, 0], [shear, 1]]
    matrix = matrix / sizes
    centre = np.full(2, 13.5)
    offset = centre - matrix @ (centre + rng.uniform(-2, 2, 2))
    out = affine_transform(image, matrix, offset, order=1)
    return np.clip(out, 0, 1).astype(np.float32) ** np.float32(rng.uniform(0.6, 1.8))


def lenet() -> tf.keras.Model:
    """Caffe's LeNet: two convolutions with pooling and two fully connected layers."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((28, 28, 1), batch_size=1, name="data"),
            layers.Conv2D(20, 5, name="conv1"),
            layers.MaxPool2D(2, name="pool1"),
            layers.Conv2D(50, 5, name="conv2"),
            layers.MaxPool2D(2, name="pool2"),
            layers.Flatten(),
            layers.Dense(500, activation="relu", name="ip1"),
            layers.Dense(10, activation="softmax", name="softmax"),
        ]
    )


def trained(images: Array, labels: Array) -> tf.keras.Model:
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = lenet()
    model.compile("adam", "sparse_categorical_crossentropy")
    rng = np.random.default_rng(SEED)
    for epoch in range(EPOCHS):
        if epoch == EPOCHS * 3 // 4:
            model.optimizer.learning_rate = 1e-4
        seen = np.stack([moved(image, rng) for image in images])[..., None]
        model.fit(seen, labels, batch_size=32, verbose=0)
    return model


def converted(model: tf.keras.Model) -> bytes:
    """The model as TFLite, batch 1, whose signature names the input "data" and the output "softmax"."""
    named = tf.keras.Model(model.inputs, {"softmax": model.outputs[0]})
    return bytes(tf.lite.TFLiteConverter.from_keras_model(named).convert())


def main() -> None:
    digits = load_digits()
    images = np.stack([picture(digit) for digit in digits.images])
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    model = trained(train_x, train_y)
    content = converted(model)
    (HERE / "lenet_mnist.tflite").write_bytes(content)
    interpreter = tf.lite.Interpreter(model_content=content)
    run = interpreter.get_signature_runner()
    found = np.array([np.argmax(run(data=image[None, ..., None])["softmax"]) for image in test_x])
    print(f"test accuracy {np.mean(found == test_y):.4f} on {len(test_y)} images, {len(content)} bytes")
    (HERE / "images").mkdir(exist_ok=True)
    for digit in range(10):
        pixels = np.round(test_x[np.flatnonzero(test_y == digit)[0]] * 255).astype(np.uint8)
        Image.fromarray(pixels).save(HERE / "images" / f"{digit}.png")


if __name__ == "__main__":
    main()
