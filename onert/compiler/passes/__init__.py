"""Passes, one a file: each a function that gives an equivalent subgraph, or the same object to say "no change".

Every declaration says what a pass requires and ensures, every docstring shows `before --> after`.
"""
