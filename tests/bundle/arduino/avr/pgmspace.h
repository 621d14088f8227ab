/* Constants on processors with one address space: what AVR's C library has for its second one. */
#pragma once
#define PROGMEM
#define PGM_P const char *
#define PSTR(text) (text)
#define pgm_read_byte(address) (*(const unsigned char *)(address))
#define strlen_P strlen
#define strcpy_P strcpy
