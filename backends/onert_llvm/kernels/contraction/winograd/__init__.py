"""Convolutions by fewer multiplications than windows have terms."""
