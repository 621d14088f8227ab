"""`python -m onert.backend.testing package.module:Backend`: a table of trials and claims.

Exits with status 1 if one fails, or if no trial is supported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from onert.backend.backend import Backend
from onert.backend.registry import load_backend
from onert.ir import OnertError

from .claims import CLAIMS, hold
from .trial import Misaligned, Skipped, align
from .trials import TRIALS


def verdicts(backend: Backend) -> Iterator[tuple[str, str, str]]:
    """The name of each claim and trial, "held", "skipped" or "FAILED", and the reason."""
    for claim in CLAIMS:
        try:
            hold(backend, claim)
            yield claim.__name__, "held", ""
        except Exception as error:  # foreign code: any exception is a failure
            yield claim.__name__, "FAILED", _why(error)
    for trial in TRIALS:
        try:
            align(backend, trial)
            yield trial.name, "held", ""
        except Skipped as reason:
            yield trial.name, "skipped", str(reason)
        except Exception as error:
            yield trial.name, "FAILED", _why(error)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, Misaligned | OnertError) else f"{type(error).__name__}: {error}"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m onert.backend.testing NAME or package.module:Backend\n")
        return 2
    try:
        backend = load_backend(arguments[0])
    except OnertError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    counts = {"held": 0, "skipped": 0, "FAILED": 0}
    claims = {claim.__name__ for claim in CLAIMS}
    trials_held = 0
    for name, verdict, why in verdicts(backend):
        counts[verdict] += 1
        trials_held += verdict == "held" and name not in claims
        sys.stdout.write(f"{verdict:<8} {name}{f': {why}' if why else ''}\n")
    sys.stdout.write(f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}\n")
    if not trials_held:
        sys.stdout.write("no trial held: the backend supports none of their operations\n")
    return 1 if counts["FAILED"] or not trials_held else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
