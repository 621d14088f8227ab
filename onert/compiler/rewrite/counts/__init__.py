"""Results whose number of entries is known only at run time, as whole tensors with valid first entries."""
