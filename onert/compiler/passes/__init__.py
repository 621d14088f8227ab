"""Passes, one a file: each a function that gives an equivalent subgraph, or the same object to say "no change".

Every docstring says what a pass requires and ensures, and shows `before --> after`.
"""
