"""Lowers products in bfloat16."""
