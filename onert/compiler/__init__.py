"""The compiler: lowers a model onto backends and plans its memory."""

from .expected import expect
from .kept import known
from .options import Options
from .package_config import package_options
from .programs import compile

__all__ = ["Options", "compile", "expect", "known", "package_options"]
