"""The compiler: lowers a model onto backends and plans its memory."""

from typing import TYPE_CHECKING

from onert.compiler.program_cache.lookup import compile, expect
from onert.compiler.program_cache.serialize import is_cached, prefetch
from onert.ir.process.later import later

from .options import Options

if TYPE_CHECKING:
    from onert.compiler.settings.package_config import package_options

__all__ = ["Options", "compile", "expect", "is_cached", "package_options", "prefetch"]

__getattr__ = later(__name__, {"package_options": "onert.compiler.settings.package_config"})
