"""Choose sizes for dynamic dimensions of inputs if the user gives none."""

from .choice import TRIES, Choice, InputShapes, choices, compiled_with

__all__ = ["TRIES", "Choice", "InputShapes", "choices", "compiled_with"]
