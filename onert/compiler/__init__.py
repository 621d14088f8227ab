"""The compiler: lowers a model onto backends and plans its memory."""

from onert.compiler.program_cache.lookup import compile
from onert.compiler.program_cache.serialize import known
from onert.compiler.program_cache.warmup import expect

from .options import Options
from .package_config import package_options

__all__ = ["Options", "compile", "expect", "known", "package_options"]
