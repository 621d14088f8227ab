"""Products of matrices in batches to commands."""
