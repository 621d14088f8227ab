"""Arithmetic that kernels of several families share: expressions, requantisation, fixed-point functions."""
