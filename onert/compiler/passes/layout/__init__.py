"""Passes that move and merge operations that only change the layout of elements."""
