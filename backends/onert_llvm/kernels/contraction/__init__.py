"""Products and convolutions: micro-kernels, the loops around them, and how a tile is finished."""
