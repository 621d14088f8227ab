"""Operations that move or make elements without computing them."""
