"""Sizes for the dimensions of inputs that a model leaves open, where nobody gives any."""

from .choice import TRIES, Choice, Given, choices, compiled_with

__all__ = ["TRIES", "Choice", "Given", "choices", "compiled_with"]
