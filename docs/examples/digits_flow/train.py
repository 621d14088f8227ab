"""Train a classifier of handwritten digits in flows alone: `python train.py [classifier.flow]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import onert.flow as myelin
from onert.flow.training import AdamOptimizer, cross_entropy

Array = np.ndarray[Any, Any]
BATCH = 32
HIDDEN = 128
TRAINED_ON = 1347
WEIGHTS = {"W1": (64, HIDDEN), "b1": (HIDDEN,), "W2": (HIDDEN, 10), "b2": (10,)}


def data() -> tuple[Array, Array, Array, Array]:
    """Pictures [n, 64] from 0 to 1 and labels: those to train on, and those to test on."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        images = (file["images"].reshape(-1, 64) / 16).astype(np.float32)
        labels = file["labels"].astype(np.int32)
    return images[:TRAINED_ON], labels[:TRAINED_ON], images[TRAINED_ON:], labels[TRAINED_ON:]


def starting(rng: np.random.Generator) -> dict[str, Array]:
    """Initial weights: normal, scaled down by the number of inputs; biases are 0."""
    return {
        name: (rng.standard_normal(shape) * (2 / shape[0]) ** 0.5 * (len(shape) > 1)).astype(np.float32)
        for name, shape in WEIGHTS.items()
    }


def logits(f: myelin.Builder, x: myelin.Variable, weights: dict[str, myelin.Variable]) -> myelin.Variable:
    """A hidden layer and one that scores the ten digits."""
    hidden = f.relu(f.add(f.matmul(x, weights["W1"]), weights["b1"]))
    return f.add(f.matmul(hidden, weights["W2"]), weights["b2"], name="logits")


def training_flow(weights: dict[str, Array]) -> myelin.Flow:
    """The function `train`, whose output is the loss of a batch; its gradient; and `optimizer`."""
    flow = myelin.Flow()
    f = flow.define("train")
    x = f.var("x", myelin.DT_FLOAT, [BATCH, 64])
    x.nogradient = True
    labels = f.var("labels", myelin.DT_INT, [BATCH])
    learned = {name: f.parameter(name, shape=array.shape, value=array) for name, array in weights.items()}
    cross_entropy(f, logits(f, x, learned), labels)
    f.func.backprop = True
    AdamOptimizer(decay=0.3).build(flow)
    return flow


def step(batch: myelin.Instance, back: myelin.Instance, update: myelin.Instance) -> None:
    """Change the weights for a batch: its loss, the gradient, and the optimizer's step."""
    batch.compute()
    back.clear()
    back["gradients/train/primal"] = batch
    back["gradients/train/d_loss:0"] = 1.0
    back.compute()
    update["optimizer/gradients/train"] = back
    update.compute()


def trained(weights: dict[str, Array], images: Array, labels: Array, epochs: int, seed: int) -> dict[str, Array]:
    """The weights after `epochs` passes over the pictures."""
    net = myelin.Compiler(num_threads=1).compile(training_flow(weights))
    batch, back = net.cell("train").instance(), net.cell("gradients/train").instance()
    update = net.cell("optimizer").instance()
    given, wanted = np.asarray(batch["train/x"]), np.asarray(batch["train/labels"])
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        update["optimizer/alpha"] = 0.002 * (1 - epoch / epochs)
        order = rng.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            given[...], wanted[...] = images[chosen], labels[chosen]
            step(batch, back, update)
    return {name: np.array(net[f"train/{name}"]) for name in WEIGHTS}


def classifier(weights: dict[str, Array], pictures: int = -1) -> myelin.Flow:
    """The function `classifier`, which returns the digit of each picture, with the trained weights as constants."""
    flow = myelin.Flow()
    f = flow.define("classifier")
    x = f.var("x", myelin.DT_FLOAT, [pictures, 64])
    scores = logits(f, x, {name: f.array(name, array) for name, array in weights.items()})
    f.argmax(scores, 1, name="digit")
    return flow


def accuracy(weights: dict[str, Array], images: Array, labels: Array) -> float:
    """Which part of the pictures is recognised."""
    net = myelin.Compiler(num_threads=1).compile(classifier(weights, len(images)))
    found = net.cell("classifier").instance()
    found["classifier/x"] = images
    found.compute()
    return float(np.mean(np.array(found["classifier/digit"]) == labels))


def main() -> None:
    images, labels, test_images, test_labels = data()
    start = time.perf_counter()
    weights = trained(starting(np.random.default_rng(0)), images, labels, epochs=60, seed=1)
    print(f"trained in {time.perf_counter() - start:.1f} s")
    print(f"test accuracy {accuracy(weights, test_images, test_labels):.4f}")
    if len(sys.argv) > 1:
        classifier(weights).save(sys.argv[1])


if __name__ == "__main__":
    main()
