"""Passes on quantisation that a model spells out as element-wise arithmetic (`QuantizeLinear` and its inverse)."""
