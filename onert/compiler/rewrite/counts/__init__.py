"""Results of which only a run knows how many there are, as whole tensors of which first entries count."""
