"""Kernels, written with the IR builder; one family per folder."""
