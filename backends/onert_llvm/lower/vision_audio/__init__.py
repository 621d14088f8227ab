"""Lowers resizing, detection and Fourier transforms."""
