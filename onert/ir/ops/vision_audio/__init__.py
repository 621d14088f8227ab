"""Operations on images, boxes and sounds."""
