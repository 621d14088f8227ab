"""Operations that run subgraphs or access state."""
