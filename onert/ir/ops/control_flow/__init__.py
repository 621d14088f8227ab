"""Operations that run other graphs or keep state."""
