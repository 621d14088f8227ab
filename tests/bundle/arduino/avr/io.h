/* The registers by which the core's HardwareSerial.h tells that there is a first port. */
#pragma once
#include <inttypes.h>
#define UBRR0H
