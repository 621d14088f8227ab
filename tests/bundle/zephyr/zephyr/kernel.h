/* As much of Zephyr as the examples include. */
#pragma once
#include <stddef.h>
#include <stdint.h>
