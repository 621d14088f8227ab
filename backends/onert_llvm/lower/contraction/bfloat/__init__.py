"""Products of bfloat16 to commands."""
