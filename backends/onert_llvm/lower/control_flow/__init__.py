"""Loops, branches and decomposed operations to commands."""
