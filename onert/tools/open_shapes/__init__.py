"""Choose sizes for dynamic dimensions of inputs if the user gives none."""

from .choice import TRIES, Choice, Given, choices, compiled_with

__all__ = ["TRIES", "Choice", "Given", "choices", "compiled_with"]
