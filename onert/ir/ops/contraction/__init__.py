"""Products and convolutions."""
