"""How long a test waits for what must happen: a bound that ends a hang, never a claim about speed."""

PATIENCE = 600.0
"""Seconds: a loaded machine may take a hundred times as long as a free one."""
