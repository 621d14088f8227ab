"""Lowers recurrent layers."""
