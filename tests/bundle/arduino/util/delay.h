/* The core needs this header only for USB. */
#pragma once
