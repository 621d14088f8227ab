"""Target machines: triples, processor features, and what follows from them."""
