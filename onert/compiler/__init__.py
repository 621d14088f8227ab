"""The compiler: lowers a model onto backends and plans its memory."""

from onert.compiler.program_cache.lookup import compile, expect
from onert.compiler.program_cache.serialize import known

from .options import Options
from .package_config import package_options

__all__ = ["Options", "compile", "expect", "known", "package_options"]
