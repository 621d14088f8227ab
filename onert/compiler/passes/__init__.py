"""Passes, one per file: each is a function that returns an equivalent subgraph, or the same object for "no change".

Every declaration states what the pass requires and ensures, every docstring shows `before --> after`.
"""
