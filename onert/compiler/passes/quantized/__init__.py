"""Passes on what models say of quantisation element by element: `QuantizeLinear` and its inverse, as arithmetic."""
