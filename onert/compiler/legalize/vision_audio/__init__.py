"""Decompositions of operations on pictures and sound."""
