"""Counter-based random numbers: a block of random bits is a function of a key and a counter.

Source: J. Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11): Philox-4x32-10 and Threefry-2x32-20.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.value import Value

_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@frozen
class Philox(Value):
    """A stream of blocks of four 32-bit numbers: a 64-bit key, and the 128-bit counter of the next block."""

    key: int
    counter: int

    def blocks(self, count: int) -> Array:
        """The next blocks, uint32 [count, 4]; the lower half of the counter wraps without a carry."""
        low, high = self.counter & _MASK64, self.counter >> 64
        lows = np.uint64(low) + np.arange(count, dtype=np.uint64)
        highs = np.full(count, high, np.uint64)
        mask, half = np.uint64(_MASK32), np.uint64(32)
        c = [lows & mask, lows >> half, highs & mask, highs >> half]
        keys = [self.key & _MASK32, self.key >> 32]
        for _ in range(ROUNDS):
            first = c[0] * np.uint64(MULTIPLIERS[0])
            second = c[2] * np.uint64(MULTIPLIERS[1])
            c = [
                (second >> half) ^ c[1] ^ np.uint64(keys[0]),
                second & mask,
                (first >> half) ^ c[3] ^ np.uint64(keys[1]),
                first & mask,
            ]
            keys = [(k + w) & _MASK32 for k, w in zip(keys, WEYL, strict=True)]
        return np.stack(c, axis=-1).astype(np.uint32)


def threefry(key: int, counter: int, count: int) -> Array:
    """Threefry blocks of two 32-bit numbers for a 64-bit key and consecutive 64-bit counters; uint32 [count, 2]."""
    counters = np.uint64(counter & _MASK64) + np.arange(count, dtype=np.uint64)
    x = [(counters & np.uint64(_MASK32)).astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)]
    words = [key & _MASK32, key >> 32]
    words.append(words[0] ^ words[1] ^ PARITY)
    x = [x[0] + np.uint32(words[0]), x[1] + np.uint32(words[1])]
    for injection in range(5):
        for rotation in ROTATIONS[injection % 2]:
            total = x[0] + x[1]
            turned = (x[1] << np.uint32(rotation)) | (x[1] >> np.uint32(32 - rotation))
            x = [total, turned ^ total]
        later = (words[(injection + 2) % 3] + injection + 1) & _MASK32
        x = [x[0] + np.uint32(words[(injection + 1) % 3]), x[1] + np.uint32(later)]
    return np.stack(x, axis=-1)
