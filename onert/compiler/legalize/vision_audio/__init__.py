"""Decompositions of operations on images and sound."""
