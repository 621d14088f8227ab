"""Lowers reductions, pooling and normalisation."""
