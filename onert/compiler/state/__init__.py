"""Model state: variables as operands of the entry, and updates in place."""
