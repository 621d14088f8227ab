"""Element-wise kernels, with and without broadcasting."""
