/* Sources of the formats: Portable Network Graphics (ISO/IEC 15948), DEFLATE (RFC 1951), zlib (RFC 1950), pgm(5). */
#include "image.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 16 };

typedef struct {
  const unsigned char *data;
  size_t size;
  size_t at;    /* bytes taken */
  unsigned bit; /* bits of the current byte taken */
  int broken;   /* something was asked for that is not there */
} Stream;

static unsigned take(Stream *in, unsigned count) {
  unsigned value = 0, i;
  for (i = 0; i < count; ++i) {
    if (in->at >= in->size) {
      in->broken = 1;
      return 0;
    }
    value |= (unsigned)(in->data[in->at] >> in->bit & 1) << i;
    if (++in->bit == 8) in->bit = 0, ++in->at;
  }
  return value;
}

/* A canonical prefix code: how many words have each length, and the symbols in the words' order. */
typedef struct {
  unsigned short count[16];
  unsigned short symbol[288];
} Code;

static void make_code(Code *code, const unsigned char *lengths, unsigned symbols) {
  unsigned length, symbol, next = 0;
  memset(code->count, 0, sizeof code->count);
  for (symbol = 0; symbol < symbols; ++symbol) ++code->count[lengths[symbol]];
  for (length = 1; length < 16; ++length)
    for (symbol = 0; symbol < symbols; ++symbol)
      if (lengths[symbol] == length) code->symbol[next++] = (unsigned short)symbol;
  code->count[0] = 0;
}

static unsigned decode(Stream *in, const Code *code) {
  unsigned word = 0, first = 0, index = 0, length;
  for (length = 1; length < 16 && !in->broken; ++length) {
    word = word << 1 | take(in, 1);
    first <<= 1;
    if (word < first + code->count[length] && word >= first) return code->symbol[index + word - first];
    first += code->count[length];
    index += code->count[length];
  }
  in->broken = 1;
  return 0;
}

typedef struct {
  unsigned char *data;
  size_t size;
  size_t at;
} Output;

static void stored(Stream *in, Output *out) {
  unsigned length;
  if (in->bit) in->bit = 0, ++in->at;
  length = take(in, 16);
  if (take(in, 16) != (~length & 0xFFFF)) in->broken = 1;
  while (length-- > 0 && !in->broken) {
    unsigned byte = take(in, 8);
    if (out->at >= out->size) in->broken = 1;
    else out->data[out->at++] = (unsigned char)byte;
  }
}

static void coded(Stream *in, Output *out, const Code *literals, const Code *distances) {
  for (;;) {
    unsigned symbol = decode(in, literals), length, distance, extra;
    if (in->broken || symbol == 256) return;
    if (symbol < 256) {
      if (out->at >= out->size) in->broken = 1;
      else out->data[out->at++] = (unsigned char)symbol;
      continue;
    }
    symbol -= 257;
    if (symbol < 8) length = 3 + symbol;
    else if (symbol == 28) length = 258;
    else extra = symbol / 4 - 1, length = 3 + ((4 + symbol % 4) << extra) + take(in, extra);
    symbol = decode(in, distances);
    if (symbol < 4) distance = 1 + symbol;
    else extra = symbol / 2 - 1, distance = 1 + ((2 + symbol % 2) << extra) + take(in, extra);
    if (symbol > 29 || distance > out->at || length > out->size - out->at) in->broken = 1;
    for (; length > 0 && !in->broken; --length, ++out->at) out->data[out->at] = out->data[out->at - distance];
  }
}

static void dynamic(Stream *in, Output *out) {
  static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  unsigned char lengths[288 + 32] = {0};
  unsigned literals = 257 + take(in, 5), distances = 1 + take(in, 5), count = 4 + take(in, 4), i;
  Code first, second;
  for (i = 0; i < count; ++i) lengths[order[i]] = (unsigned char)take(in, 3);
  make_code(&first, lengths, 19);
  memset(lengths, 0, sizeof lengths);
  for (i = 0; i < literals + distances && !in->broken;) {
    unsigned symbol = decode(in, &first), value = 0, times = 1;
    if (symbol < 16) value = symbol;
    else if (symbol == 16) value = i > 0 ? lengths[i - 1] : 0, times = 3 + take(in, 2);
    else times = symbol == 17 ? 3 + take(in, 3) : 11 + take(in, 7);
    for (; times > 0 && i < literals + distances; --times) lengths[i++] = (unsigned char)value;
  }
  if (literals > 286) in->broken = 1;
  if (in->broken) return;
  make_code(&first, lengths, literals);
  make_code(&second, lengths + literals, distances);
  coded(in, out, &first, &second);
}

static void fixed(Stream *in, Output *out) {
  unsigned char lengths[288], distances[30];
  Code first, second;
  unsigned i;
  for (i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  memset(distances, 5, sizeof distances);
  make_code(&first, lengths, 288);
  make_code(&second, distances, 30);
  coded(in, out, &first, &second);
}

/* A zlib stream that holds exactly `size` bytes. */
static int inflate(const unsigned char *data, size_t length, unsigned char *out, size_t size) {
  Stream in = {data, length, 2, 0, 0};
  Output made = {out, size, 0};
  unsigned last = 0;
  while (!last && !in.broken) {
    unsigned kind;
    last = take(&in, 1);
    kind = take(&in, 2);
    if (kind == 0) stored(&in, &made);
    else if (kind == 1) fixed(&in, &made);
    else if (kind == 2) dynamic(&in, &made);
    else in.broken = 1;
  }
  return !in.broken && made.at == size;
}

static unsigned number(const unsigned char *bytes) {
  return (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 | (unsigned)bytes[2] << 8 | bytes[3];
}

static unsigned char paeth(int left, int up, int corner) {
  int guess = left + up - corner;
  int a = guess > left ? guess - left : left - guess, b = guess > up ? guess - up : up - guess;
  int c = guess > corner ? guess - corner : corner - guess;
  return (unsigned char)(a <= b && a <= c ? left : b <= c ? up : corner);
}

/* Undoes the filter of each row; `rows` has a byte in front of each that names it. */
static int unfilter(const unsigned char *rows, unsigned width, unsigned height, unsigned char *pixels) {
  unsigned x, y;
  for (y = 0; y < height; ++y, rows += width + 1) {
    for (x = 0; x < width; ++x) {
      unsigned char *here = pixels + (size_t)y * width + x;
      unsigned left = x ? here[-1] : 0, up = y ? *(here - width) : 0, corner = x && y ? *(here - width - 1) : 0;
      unsigned add = 0;
      switch (rows[0]) {
        case 0: break;
        case 1: add = left; break;
        case 2: add = up; break;
        case 3: add = (left + up) / 2; break;
        case 4: add = paeth((int)left, (int)up, (int)corner); break;
        default: return 0;
      }
      *here = (unsigned char)(rows[x + 1] + add);
    }
  }
  return 1;
}

static const char *read_png(const unsigned char *file, size_t size, unsigned width, unsigned height,
                            unsigned char *pixels) {
  static unsigned char packed[LARGEST], rows[LARGEST];
  size_t at = 8, length = 0, needed = ((size_t)width + 1) * height;
  if (needed > LARGEST) return "it is larger than this program reads";
  while (size - at >= 12) {
    unsigned count = number(file + at);
    const unsigned char *kind = file + at + 4, *body = file + at + 8;
    if (count > size - at - 12) return "a chunk ends beyond the file";
    if (memcmp(kind, "IHDR", 4) == 0) {
      if (count != 13 || number(body) != width || number(body + 4) != height) return "it has another size";
      if (body[8] != 8 || body[9] != 0 || body[12] != 0) return "its pixels are not 8 bits of grey, row by row";
    } else if (memcmp(kind, "IDAT", 4) == 0) {
      if (count > LARGEST - length) return "it is larger than this program reads";
      memcpy(packed + length, body, count);
      length += count;
    }
    at += 12 + (size_t)count;
  }
  if (!inflate(packed, length, rows, needed) || !unfilter(rows, width, height, pixels)) return "its pixels are damaged";
  return NULL;
}

static const char *read_pgm(const unsigned char *file, size_t size, unsigned width, unsigned height,
                            unsigned char *pixels) {
  unsigned value[3] = {0, 0, 0}, i;
  size_t at = 2;
  for (i = 0; i < 3; ++i) {
    while (at < size && (file[at] == '#' || file[at] <= ' ')) {
      if (file[at] == '#') while (at < size && file[at] != '\n') ++at;
      else ++at;
    }
    while (at < size && file[at] >= '0' && file[at] <= '9' && value[i] < LARGEST) value[i] = value[i] * 10 + (file[at++] - '0');
  }
  if (value[0] != width || value[1] != height) return "it has another size";
  if (value[2] != 255) return "its pixels are not 8 bits of grey";
  if (at >= size || size - at - 1 < (size_t)width * height) return "it is cut";
  memcpy(pixels, file + at + 1, (size_t)width * height);
  return NULL;
}

const char *read_image(const char *path, unsigned width, unsigned height, unsigned char *pixels) {
  static unsigned char content[LARGEST];
  FILE *file = fopen(path, "rb");
  size_t size;
  if (file == NULL) return "it cannot be opened";
  size = fread(content, 1, sizeof content, file);
  fclose(file);
  if (size >= 8 && memcmp(content, "\x89PNG\r\n\x1a\n", 8) == 0) return read_png(content, size, width, height, pixels);
  if (size >= 2 && memcmp(content, "P5", 2) == 0) return read_pgm(content, size, width, height, pixels);
  return "it is neither a PNG nor a PGM (P5)";
}
