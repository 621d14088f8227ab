/* The parts of Zephyr that the examples use. */
#pragma once
#include <stddef.h>
#include <stdint.h>
