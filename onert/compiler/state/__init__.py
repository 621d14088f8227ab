"""State of models: variables as operands of the entry, and what of them is updated in place."""
