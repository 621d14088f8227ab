"""Operations that no backend runs natively, written as graphs of operations that one does."""
