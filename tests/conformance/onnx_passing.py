"""Writes `onnx_passing.txt`: the cases of ONNX's test suite that pass natively and on the reference backend."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.insert(0, str(HERE.parent))
    from onnx_cases import BACKENDS, KINDS, cases, problem, read

    warnings.simplefilter("ignore")
    found = []
    for kind in KINDS:
        for name in sorted(cases(kind)):
            case = read(kind, name)
            if all(problem(case, *backends) is None for backends in BACKENDS):
                found.append(f"{kind}/{name}\n")
    (HERE / "onnx_passing.txt").write_text("".join(found), encoding="ascii")
    print(len(found), "cases pass")


if __name__ == "__main__":
    main()
