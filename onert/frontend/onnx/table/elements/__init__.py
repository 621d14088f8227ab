"""Tables of operators on elements and on their places."""
