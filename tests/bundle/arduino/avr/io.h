/* Registers by which the core's HardwareSerial.h recognises the first serial port. */
#pragma once
#include <inttypes.h>
#define UBRR0H
