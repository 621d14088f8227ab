"""Valid C names for the names of models."""

from __future__ import annotations

import re
from collections.abc import Container

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default
        delete do double else enum explicit export extern false float for friend goto if inline int long mutable
        namespace new noexcept not nullptr operator or private protected public register restrict return short signed
        sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void
        volatile while xor""",
    )
)


_TYPES = re.compile(
    r"u?int(_least|_fast)?(8|16|32|64)_t|u?int(ptr|max)_t|(size|ptrdiff|wchar|nullptr|max_align)_t"
    r"|U?INT(_LEAST|_FAST)?(8|16|32|64)_(MIN|MAX|C)|U?INT(PTR|MAX)_(MIN|MAX|C)|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MIN|MAX)"
    r"|NULL|offsetof|unreachable"
)
"""Names defined by stddef.h and stdint.h, which the header includes."""

_HEADER = frozenset(
    {"GLOW_SUCCESS", "GLOW_MEM_ALIGN", "GLOW_GET_ADDR", "SymbolTableEntry", "BundleConfig", "bundle_find_symbol"}
)
_AREAS = frozenset({"constantWeightVars", "mutableWeightVars", "activations"})

_LIBRARY = re.compile(
    r"(acosh?|asinh?|atan[2h]?|cbrt|ceil|copysign|cosh?|erfc?|exp(2|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb"
    r"|ldexp|lgamma|llrint|llround|log(10|1p|2|b)?|lrint|lround|modf|nan|nearbyint|nextafter|nexttoward|pow|remainder|remquo"
    r"|rint|round|roundeven|scalbl?n|sincos|sinh?|sqrt|tanh?|tgamma|trunc)[fl]?"
    r"|mem(chr|cmp|cpy|move|set|ccpy)|str(cat|chr|cmp|coll|cpy|cspn|dup|error|len|ncat|ncmp|ncpy|ndup|pbrk|rchr|spn|str|tok|xfrm)"
    r"|(c|m|re)alloc|free|aligned_alloc|abort|exit|atexit|quick_exit|system|getenv|ll?abs|abs|(ll?)?div|ato(f|i|ll?)|strto[a-z]+"
    r"|rand|srand|qsort|bsearch|[fsv]*n?printf|[fsv]*scanf|f?put[cs]|f?get[cs]|putchar|getchar|f(open|close|read|write|flush|seek|tell)"
    r"|perror|remove|rename|rewind|setbuf|tmpfile|stdin|stdout|stderr|errno|signal|raise|setjmp|longjmp|assert"
    r"|is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(lower|upper)"
    r"|time|clock(_gettime)?|difftime|mktime|asctime|ctime|gmtime|localtime|strftime|main|pthread_[a-z_]+|sched_[a-z_]+|syscall"
)
"""Functions of the C library and of threads, which compilers recognise and the object may call."""


def why_taken(name: str) -> str | None:
    """The reason why an otherwise valid C name cannot name an entry point or a bundle; None if it can."""
    if _TYPES.fullmatch(name) or name in _HEADER:
        return "which the header defines"
    if name in _AREAS:
        return "which is the name of an entry point's parameter"
    if _LIBRARY.fullmatch(name):
        return "which the C library defines"
    if re.match(r"_[A-Z_]|_", name):
        return "which is reserved for the compiler"
    return None


def symbol(name: str) -> str:
    """An entry point's name for a model's name: the identifier, modified if it is taken."""
    legal = identifier(name)
    return next(name for name in (legal, f"{legal}_", f"A{legal}") if why_taken(name) is None)


def identifier(name: str) -> str:
    """The name with every character other than ASCII letters, digits and underscores replaced by an underscore.

    A name that starts with a digit is prefixed with "A" (both as in Glow); a keyword gets an underscore at the end.
    """
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    if legal[0].isdigit():
        legal = "A" + legal
    return legal + "_" if legal in _KEYWORDS else legal


def apart(name: str, taken: Container[str]) -> str:
    """The name, with `__1`, `__2` ... appended if it is taken."""
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}__{number}"
    return found
