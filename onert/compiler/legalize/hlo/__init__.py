"""Decompositions of StableHLO operations."""
