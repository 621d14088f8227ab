"""Transposed and three-dimensional convolutions to commands."""
