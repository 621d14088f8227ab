"""Which operations of which element types are lowered by which function."""
