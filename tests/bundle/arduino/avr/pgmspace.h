/* AVR's access to constants in flash, for processors with a single address space. */
#pragma once
#define PROGMEM
#define PGM_P const char *
#define PSTR(text) (text)
#define pgm_read_byte(address) (*(const unsigned char *)(address))
#define strlen_P strlen
#define strcpy_P strcpy
