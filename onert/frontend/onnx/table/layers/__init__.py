"""Tables of the operators that networks have as layers."""
