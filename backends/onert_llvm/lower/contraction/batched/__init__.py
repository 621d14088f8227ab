"""Lowers batched matrix products."""
