"""Reductions, pooling, normalisation."""
