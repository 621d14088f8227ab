"""Operations that move or generate elements."""
