"""Products and convolutions to commands."""
