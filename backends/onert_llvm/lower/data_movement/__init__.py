"""Copies, views, gathers and parts of tensors to commands."""
