"""Frames: the tensors of one subgraph in one execution, and its steps bound to them."""
