"""Operations on images, boxes and audio."""
