"""Tables of neural network layers."""
