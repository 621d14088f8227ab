"""Tables of operators on elements, shapes and indices."""
