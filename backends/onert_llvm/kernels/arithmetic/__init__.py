"""Arithmetic shared by several kernel families: expressions, requantisation, fixed-point functions."""
