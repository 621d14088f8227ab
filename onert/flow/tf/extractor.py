"""Extract the part of a TensorFlow graph that computes some tensors from others, as a function of a flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.flow.graph import Function, Graph
from onert.ir import Array

from .values import Resource
from .walk import Extraction, Unprefixed, Walk, shape_of


class Extractor:
    """Adds functions to a flow from a session's graph, or from a concrete function of TensorFlow.

    Variables are named after TensorFlow's tensors, such as `y:0`. Operations become those of flows if possible; others
    keep their type and attributes, for a user's own kernels. Everything known before the graph runs, including weights,
    becomes constant. An unknown size is -1.

    Called functions are inlined, and so are the iterations of a loop with a known trip count, such as that of a
    recurrent layer over a known number of steps.
    """

    def __init__(self, sess: Any, flow: Graph) -> None:
        import tensorflow  # noqa: PLC0415 (heavy and optional)

        self._tf = tensorflow
        self._flow = flow
        self._session = sess if hasattr(sess, "run") else None
        self._graph = sess.graph
        self._captured: dict[str, Any] = {}
        if self._session is None:
            captured = list(sess.captured_inputs)
            stand_in = self._graph.inputs[len(self._graph.inputs) - len(captured) :]
            self._captured = {t.name: value for t, value in zip(stand_in, captured, strict=True)}
            self._given = [t for t in sess.inputs if t.name not in self._captured]
            self._results = list(sess.outputs)

    def add(self, func: Function, inputs: Sequence[Any] = (), outputs: Sequence[Any] = ()) -> None:
        """Add the operations that compute `outputs` from `inputs` to a function; by default all of a concrete function.

        Raises ModelError if an output depends on a placeholder that is not an input, if the rank of a tensor is
        unknown, or if the trip count of a loop, or the branch that is taken, depends on an input.
        """
        if self._session is None:
            inputs, outputs = inputs or self._given, outputs or self._results
        shared = Extraction(self._tf, self._flow, Unprefixed(self._flow, func), self._read)
        walk = Walk(shared, self._graph)
        for tensor in inputs:
            variable = self._flow.var(tensor.name, tensor.dtype.base_dtype.name, shape_of(tensor))
            variable.input = True
            walk.values[tensor.name] = variable
        for name, value in self._captured.items():
            is_handle = value.dtype.base_dtype == self._tf.resource
            walk.values[name] = Resource(name, value) if is_handle else np.asarray(value.numpy())
        walk.computed(outputs)
        for tensor in outputs:
            walk.variable(tensor).output = True

    def _read(self, resource: Resource, dtype: Any) -> Array:
        """The current elements of a variable."""
        if self._session is None:
            found: Array = self._tf.raw_ops.ReadVariableOp(resource=resource.tensor, dtype=dtype).numpy()
            return found
        if resource.tensor.dtype.base_dtype != self._tf.resource:
            return np.asarray(self._session.run(resource.tensor))
        with self._graph.as_default():
            value = self._tf.raw_ops.ReadVariableOp(resource=resource.tensor, dtype=dtype)
        return np.asarray(self._session.run(value))
