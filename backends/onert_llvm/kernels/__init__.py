"""Kernels, written with the IR builder; one family a folder."""
