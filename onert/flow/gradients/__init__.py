"""Gradients of functions of flows, by reverse accumulation.

For a function `f`, `gradient(flow, f, rules)` adds a function `gradients/f`. It reads tensors of an instance of `f`, to
which the variable `gradients/f/primal` refers, and computes from the adjoint of each output the adjoint of each input:
that of `f/x` is `gradients/f/d_x`. Adjoints of learnable variables are accumulated in the instance until it is cleared.
The names are Myelin's.
"""

from .accumulation import GradientRule, Gradients, Term, gradient, gradient_name
from .table import GRADIENTS

__all__ = ["GRADIENTS", "GradientRule", "Gradients", "Term", "gradient", "gradient_name"]
