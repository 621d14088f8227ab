"""Reductions along an axis or of all elements, and operations built on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from onert.flow.graph import DT_FLOAT32, DT_INT32, Variable
from onert.ir import ModelError

from .elementwise import Elementwise


def _reduction(optype: str, meaning: str) -> Callable[..., Variable]:
    def method(
        self: Reductions, x: Any, axis: int | None = None, keepdims: bool | None = None, name: str | None = None
    ) -> Variable:
        return self.reduce(optype, x, axis, keepdims, name)

    method.__doc__ = f"{meaning}."
    return method


class Reductions(Elementwise):
    """Reductions. Without an axis all elements are reduced to a scalar; `keepdims` keeps a dimension of size 1."""

    def reduce(
        self, optype: str, x: Any, axis: int | None, keepdims: bool | None, name: str | None, dtype: str | None = None
    ) -> Variable:
        """A reduction, by the name of its type."""
        x = self.value(x)
        at = self._axis(x, axis)
        result = self.made(optype, [x], name, self._reduced(x, at, bool(keepdims)), dtype)
        assert result.producer is not None
        if at is not None:
            result.producer.add_attr("axis", at)
            if keepdims:
                result.producer.add_attr("keepdims", True)
        return result

    def _axis(self, x: Variable, axis: int | None) -> int | None:
        """The axis counted from the front. Raises ModelError if it is out of range."""
        if axis is None:
            return None
        if not -x.rank() <= axis < x.rank():
            raise ModelError(f"'{x.name}' of rank {x.rank()} has no axis {axis}")
        return axis % x.rank()

    def _reduced(self, x: Variable, axis: int | None, keep: bool) -> Sequence[int]:
        if axis is None:
            return []
        return [*x.shape[:axis], *([1] if keep else []), *x.shape[axis + 1 :]]

    sum = _reduction("Sum", "The sum")
    product = _reduction("Product", "The product")
    min = _reduction("Min", "The smallest element")
    max = _reduction("Max", "The largest element")
    all = _reduction("All", "1 if no element is 0, else 0")
    any = _reduction("Any", "1 if any element is not 0, else 0")
    logsumexp = _reduction("LogSumExp", "The logarithm of the sum of exponentials")

    def count(self, p: Any, axis: int | None = None, dtype: str = DT_FLOAT32, name: str | None = None) -> Variable:
        """The number of elements that are not 0, as an element of type `dtype`."""
        return self.reduce("Count", p, axis, None, name, dtype)

    def mean(self, x: Any, axis: int | None = None, keepdims: bool | None = None, name: str | None = None) -> Variable:
        """The mean."""
        x = self.value(x)
        at = self._axis(x, axis)
        sizes = x.shape if at is None else [x.shape[at]]
        if -1 in sizes:
            raise ModelError(f"'{x.name}' {x.shape} has no mean over a size that is not known")
        count = math.prod(sizes)
        return self.div(self.sum(x, axis, keepdims), self.const(count, x.type), name)

    def variance(
        self, x: Any, axis: int | None = None, keepdims: bool | None = None, name: str | None = None
    ) -> Variable:
        """The mean of the squared distances from the mean."""
        x = self.value(x)
        return self.mean(self.square(self.sub(x, self.mean(x, axis, keepdims=True))), axis, keepdims, name)

    def norm(self, x: Any, name: str | None = None) -> Variable:
        """The square root of the sum of squares."""
        return self.sqrt(self.sum(self.square(x)), name)

    def normalize(self, x: Any, name: str | None = None) -> Variable:
        """`x` divided by its norm."""
        x = self.value(x)
        return self.mul(x, self.rcp(self.norm(x)), name)

    def softmax(self, x: Any, axis: int | None = None, name: str | None = None) -> Variable:
        """`exp(x) / sum(exp(x))` along an axis, or over all elements."""
        return self._along("SoftMax", x, axis, name)

    def log_softmax(self, x: Any, axis: int | None = None, name: str | None = None) -> Variable:
        """The logarithm of the softmax along an axis, or over all elements."""
        return self._along("LogSoftMax", x, axis, name)

    def _along(self, optype: str, x: Any, axis: int | None, name: str | None) -> Variable:
        x = self.value(x)
        at = self._axis(x, axis)
        result = self.op(optype, [x], name)
        if at is not None:
            assert result.producer is not None
            result.producer.add_attr("axis", at)
        return result

    def argmin(
        self,
        x: Any,
        axis: int | None = None,
        ouput_value: bool = False,  # Myelin's spelling
        name: str | None = None,
    ) -> Any:
        """The index of the first smallest element, as int32; with `ouput_value`, also the element."""
        return self._extreme("ArgMin", x, axis, ouput_value, name)

    def argmax(self, x: Any, axis: int | None = None, ouput_value: bool = False, name: str | None = None) -> Any:
        """The index of the first largest element, as int32; with `ouput_value`, also the element."""
        return self._extreme("ArgMax", x, axis, ouput_value, name)

    def _extreme(self, optype: str, x: Any, axis: int | None, value: bool, name: str | None) -> Any:
        x = self.value(x)
        index = self.reduce(optype, x, axis, None, name, DT_INT32)
        if not value:
            return index
        assert index.producer is not None
        return index, self.result(index.producer, x.type, index.shape, 1)

    def dot_product(self, x: Any, y: Any, name: str | None = None) -> Variable:
        """The sum of the products of the elements."""
        return self.sum(self.mul(x, y), name=name)

    def cos_sim(self, x: Any, y: Any, name: str | None = None) -> Variable:
        """The cosine of the angle between two vectors."""
        return self.div(self.dot_product(x, y), self.mul(self.norm(x), self.norm(y)), name)
