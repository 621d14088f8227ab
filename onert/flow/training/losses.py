"""Losses, which training minimises."""

from __future__ import annotations

from typing import Any

from onert.flow.builder import Builder
from onert.flow.graph import Variable
from onert.ir import ModelError


def cross_entropy(f: Builder, logits: Variable, labels: Any, name: str = "loss") -> Variable:
    """The mean of `log(sum(exp(logits))) - logits[label]`, the negative logarithm of the labels' softmax.

    `logits` are [batch, classes], `labels` integers [batch] below `classes`. Raises ModelError for other shapes.
    """
    labels = f.value(labels)
    if logits.rank() != 2 or labels.shape != logits.shape[:1]:
        raise ModelError(f"cross_entropy is given logits {logits.shape} and labels {labels.shape}")
    marks = f.onehot(labels, logits.shape[1], f.const(1.0, logits.type))
    return f.mean(f.sub(f.logsumexp(logits, 1), f.sum(f.mul(logits, marks), 1)), name=name)


def squared_error(f: Builder, y: Variable, target: Any, name: str = "loss") -> Variable:
    """The mean of the squared differences."""
    return f.mean(f.square(f.sub(y, target)), name=name)
