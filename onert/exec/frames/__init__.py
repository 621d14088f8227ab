"""Frames: where the tensors of one subgraph lie while it runs, and its steps bound to these places."""
