"""Kernels that evaluate operations in NumPy."""
