"""Convolutions that sum their windows in place, in another order than a matrix product."""
