"""Convolutions with fewer multiplications than a direct convolution (Winograd)."""
