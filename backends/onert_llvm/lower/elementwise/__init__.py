"""Element-wise operations to commands."""
