"""FarmHash's 64-bit fingerprint, for many byte strings of the same length at once.

Source: the published algorithm `farmhashna::Hash64`, whose results are guaranteed by Fingerprint64 never to change.
"""

from __future__ import annotations

import numpy as np

from onert.ir.dtype import Array

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))

Pair = tuple[Array, Array]


def _n(value: int) -> np.uint64:
    return np.uint64(value & ((1 << 64) - 1))


def _word(rows: Array, at: int, size: int = 8) -> Array:
    """Little-endian integers of `size` bytes, one per row, as uint64."""
    out: Array = np.ascontiguousarray(rows[:, at : at + size]).view(f"<u{size}")[:, 0].astype(np.uint64)
    return out


def _turn(x: Array, by: int) -> Array:
    out: Array = (x >> _n(by)) | (x << _n(64 - by))
    return out


def _mix(x: Array) -> Array:
    out: Array = x ^ (x >> _n(47))
    return out


def _join(u: Array, v: Array, mul: Array | np.uint64) -> Array:
    """Hash 128 bits to 64 (`HashLen16`)."""
    out: Array = _mix((_mix((u ^ v) * mul) ^ v) * mul) * mul
    return out


def _short(rows: Array, length: int) -> Array:
    """Strings of up to 16 bytes."""
    mul = _K2 + _n(length * 2)
    if length >= 8:
        a, b = _word(rows, 0) + _K2, _word(rows, length - 8)
        return _join(_turn(b, 37) * mul + a, (_turn(a, 25) + b) * mul, mul)
    if length >= 4:
        return _join(_n(length) + (_word(rows, 0, 4) << _n(3)), _word(rows, length - 4, 4), mul)
    if length > 0:
        y = _word(rows, 0, 1) + (_word(rows, length >> 1, 1) << _n(8))
        z = _n(length) + (_word(rows, length - 1, 1) << _n(2))
        return _mix(y * _K2 ^ z * _K0) * _K2
    return np.full(len(rows), _K2)


def _middle(rows: Array, length: int) -> Array:
    """Strings of 17 to 64 bytes."""
    mul = _K2 + _n(length * 2)
    a, b = _word(rows, 0) * (_K1 if length <= 32 else _K2), _word(rows, 8)
    c, d = _word(rows, length - 8) * mul, _word(rows, length - 16) * _K2
    y = _turn(a + b, 43) + _turn(c, 30) + d
    z = _join(y, a + _turn(b + _K2, 18) + c, mul)
    if length <= 32:
        return z
    e, f = _word(rows, 16) * mul, _word(rows, 24)
    g, h = (y + _word(rows, length - 32)) * mul, (z + _word(rows, length - 24)) * mul
    return _join(_turn(e + f, 43) + _turn(g, 30) + h, e + _turn(f + a, 18) + g, mul)


def _weak(rows: Array, at: int, a: Array, b: Array) -> Pair:
    w, x, y, z = (_word(rows, at + 8 * i) for i in range(4))
    a = a + w
    b = _turn(b + a + z, 21)
    total = a + x + y
    return total + z, b + _turn(total, 44) + a


def _long(rows: Array, length: int) -> Array:
    """Strings of more than 64 bytes, in blocks of 64; the last block overlaps the one before it."""
    seed = 81
    x = np.full(len(rows), _n(seed)) * _K2 + _word(rows, 0)
    y = np.full(len(rows), _n(seed * int(_K1) + 113))
    z = _mix(y * _K2 + _n(113)) * _K2
    v: Pair = (np.zeros_like(x), np.zeros_like(x))
    w: Pair = (np.zeros_like(x), np.zeros_like(x))
    for at in range(0, (length - 1) // 64 * 64, 64):
        x = _turn(x + y + v[0] + _word(rows, at + 8), 37) * _K1
        y = _turn(y + v[1] + _word(rows, at + 48), 42) * _K1
        x = x ^ w[1]
        y = y + v[0] + _word(rows, at + 40)
        z = _turn(z + w[0], 33) * _K1
        v = _weak(rows, at, v[1] * _K1, x + w[0])
        w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
        x, z = z, x
    mul = _K1 + ((z & _n(0xFF)) << _n(1))
    at = length - 64
    w = (w[0] + _n((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _turn(x + y + v[0] + _word(rows, at + 8), 37) * mul
    y = _turn(y + v[1] + _word(rows, at + 48), 42) * mul
    x = x ^ (w[1] * _n(9))
    y = y + v[0] * _n(9) + _word(rows, at + 40)
    z = _turn(z + w[0], 33) * mul
    v = _weak(rows, at, v[1] * mul, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
    return _join(_join(v[0], w[0], mul) + _mix(y) * _K0 + x, _join(v[1], w[1], mul) + z, mul)


def fingerprints(rows: Array) -> Array:
    """The fingerprint of each row of bytes [n, length], as uint64."""
    length = rows.shape[1]
    function = _short if length <= 16 else _middle if length <= 64 else _long
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
        return function(rows, length)
