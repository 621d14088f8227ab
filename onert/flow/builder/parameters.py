"""Learnable variables and their initial values."""

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
    """Learnable variables. Random ones get their values in `Network.init_model_parameters`."""

    def parameter(self, name: str, dtype: str = DT_FLOAT32, shape: Sequence[int] = (), value: Any = None) -> Variable:
        """A learnable variable, shared by all instances, with initial value `value` or zeros."""
        variable = self.var(name, dtype, shape)
        variable.learnable = True
        if value is not None:
            variable.data = np.asarray(value)
        return variable

    def random_uniform(self, var: Variable) -> Variable:
        """Initialise the variable, which is returned, with numbers uniformly distributed between -s and s, where s is
        1 / sqrt(number of elements)."""
        return self._random(var, "uniform")

    def random_normal(self, var: Variable) -> Variable:
        """Initialise the variable, which is returned, with normally distributed numbers, of mean 0 and standard
        deviation 1 / sqrt(number of elements)."""
        return self._random(var, "normal")

    def random_ortho(self, var: Variable) -> Variable:
        """Initialise the variable, which is returned, with random orthonormal rows, or columns if there are fewer
        columns than rows. All dimensions but the first count as columns. A variable of rank below 2 is initialised with
        numbers of the standard normal distribution."""
        return self._random(var, "ortho")

    def _random(self, var: Variable, distribution: str) -> Variable:
        """Store the distribution's name. Raises ModelError unless the variable is learnable and of floats."""
        dtype = DTYPES.get(var.type)
        if not var.learnable or dtype is None or not dtype.is_float or not var.shape_defined():
            raise ModelError(f"'{var.name}' {var.typestr()} cannot be random, expected a learnable variable of floats")
        assert distribution in DISTRIBUTIONS
        var.add_attr(ATTRIBUTE, distribution)
        return var
