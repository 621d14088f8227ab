"""Lowers transposed and three-dimensional convolutions."""
