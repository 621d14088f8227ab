"""The commands, and what they are made of."""
