"""Products and convolutions: micro-kernels, the loops around them, and the epilogues of tiles."""
