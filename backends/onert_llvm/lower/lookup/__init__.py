"""Operations that look something up, as commands."""
