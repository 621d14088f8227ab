"""Convolutions whose windows are summed where they lie, in another order than a product's."""
