"""Lowers products and convolutions."""
