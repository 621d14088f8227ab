"""Element by element, with and without broadcasting."""
