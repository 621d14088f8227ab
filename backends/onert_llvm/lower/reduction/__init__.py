"""Reductions, pooling and normalisation to commands."""
