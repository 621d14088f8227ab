"""Operations of StableHLO."""
