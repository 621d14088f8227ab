"""Symbolic dimensions: numbers derived from lengths that are not known yet."""
