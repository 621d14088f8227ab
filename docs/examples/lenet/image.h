/* Reads pictures in shades of grey: PGM (P5) and PNG, 8 bits a pixel, without any library. */
#ifndef IMAGE_H
#define IMAGE_H

/* Fills `pixels` with width * height bytes, row by row. Returns a null pointer when done, else what is wrong with the
 * file; it never reads or writes beyond what it is given, whatever the file holds.
 */
const char *read_image(const char *path, unsigned width, unsigned height, unsigned char *pixels);

#endif
