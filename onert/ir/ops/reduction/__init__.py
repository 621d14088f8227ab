"""Reductions, pooling and normalisation."""
