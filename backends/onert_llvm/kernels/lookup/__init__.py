"""Kernels that look something up: trees of tests."""
