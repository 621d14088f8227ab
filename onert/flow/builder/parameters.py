"""Variables that are learned, and what they begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.flow.graph import DT_FLOAT32, Variable
from onert.frontend.flow.elements import DTYPES
from onert.ir import ModelError

from .core import Core
from .initial import ATTRIBUTE, DISTRIBUTIONS


class Parameters(Core):
    """Learnable variables. Those that are to be random are so after `Network.init_model_parameters`."""

    def parameter(self, name: str, dtype: str = DT_FLOAT32, shape: Sequence[int] = (), value: Any = None) -> Variable:
        """A variable that is learned: shared by all instances, at first `value` or zeros."""
        variable = self.var(name, dtype, shape)
        variable.learnable = True
        if value is not None:
            variable.data = np.asarray(value)
        return variable

    def random_uniform(self, var: Variable) -> Variable:
        """The variable itself, which is to begin with numbers even between -s and s, where s is 1 by the root of how
        many elements it has."""
        return self._random(var, "uniform")

    def random_normal(self, var: Variable) -> Variable:
        """The variable itself, which is to begin with numbers of the normal distribution, of mean 0 and the standard
        deviation 1 by the root of how many elements it has."""
        return self._random(var, "normal")

    def random_ortho(self, var: Variable) -> Variable:
        """The variable itself, which is to begin with random rows, or columns if there are fewer of these, of length 1
        at right angles to each other. All dimensions but the first count as columns; of fewer than two dimensions it is
        to begin with numbers of the standard normal distribution."""
        return self._random(var, "ortho")

    def _random(self, var: Variable, distribution: str) -> Variable:
        """The variable with the name of a distribution; ModelError unless it is learnable and of floats."""
        dtype = DTYPES.get(var.type)
        if not var.learnable or dtype is None or not dtype.is_float or not var.shape_defined():
            raise ModelError(f"'{var.name}' {var.typestr()} cannot be random, expected a learnable variable of floats")
        assert distribution in DISTRIBUTIONS
        var.add_attr(ATTRIBUTE, distribution)
        return var
