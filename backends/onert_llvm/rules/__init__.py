"""Rules: which function lowers an operation with given element types."""
