"""What passes are written with: editing a graph, checks after it, and which operations have effects."""
