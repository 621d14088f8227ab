"""Every test must check something: checks are counted, and a test that passes without one fails.

A check is an `assert` that held (in a test or in a module of the tests listed below), a call of one of NumPy's
`assert_` functions, a comparison by the backends' conformance kit, or a `pytest.raises` or `pytest.warns`, which fail
the test themselves if nothing is raised.
"""

from __future__ import annotations

import ast
import gc
import signal
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

import numpy as np
import pytest
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, Phase, settings

from onert.backend.testing import claims, trial
from onert.backend.writers import WRITERS

CHECKING = (
    "backend",
    "bundle",
    "compiler",
    "conformance",
    "exec",
    "host",
    "litert_peer",
    "llvm",
    "mutants",
    "mutation",
    "recurrent_trials",
    "verdict",
)
"""Packages and modules with assertions for tests; those in test files are counted without being listed."""

pytest.register_assert_rewrite(*CHECKING)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background makes it ignore interrupts, and so would the processes that tests
    # interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

UNTIMED = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""The default: no test may fail because the machine is slow."""
settings.register_profile("untimed", UNTIMED)
settings.load_profile("untimed")
settings.register_profile("unshrunk", UNTIMED, phases=(Phase.explicit, Phase.generate), database=None)
"""Skips shrinking, for runs that only need to know whether a test fails: finding the smallest example is slow."""


class Count:
    """The number of checks that the current test has made."""

    def __init__(self) -> None:
        self.checks = 0

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each call counted as a check."""

        @wraps(function)
        def counted(*given: Any, **named: Any) -> Any:
            self.checks += 1
            return function(*given, **named)

        return counted


COUNT = Count()

for _name in [n for n in dir(np.testing) if n.startswith("assert_")]:
    setattr(np.testing, _name, COUNT.counting(getattr(np.testing, _name)))
for _module in (claims, trial):
    for _name in vars(_module).keys() & {"compare", "_require"}:
        setattr(_module, _name, COUNT.counting(getattr(_module, _name)))
pytest.raises = COUNT.counting(pytest.raises)  # type: ignore[assignment]
pytest.warns = COUNT.counting(pytest.warns)  # type: ignore[assignment]


def _passed() -> bool:
    """Called after each assertion that holds: counts it. The result is for pytest, which need not tell its plugins."""
    COUNT.checks += 1
    return False


rewrite._check_if_assertion_pass_impl = _passed
_rewritten = rewrite.AssertionRewriter.visit_Assert


def _counted(rewriter: rewrite.AssertionRewriter, assertion: ast.Assert) -> list[ast.stmt]:
    """The rewritten assertion and, after it, the call that counts it.

    With pytest's own hook for assertions that pass, rewriting takes three times as long.
    """
    call = ast.Expr(rewriter.helper("_check_if_assertion_pass_impl"))
    return [*_rewritten(rewriter, assertion), ast.fix_missing_locations(ast.copy_location(call, assertion))]


rewrite.AssertionRewriter.visit_Assert = _counted  # type: ignore[method-assign]

THRESHOLDS = gc.get_threshold()
gc.set_threshold(10_000)
"""While tests are collected, many small objects are allocated and hardly any die."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Tens of thousands of collected tests live until the end: every full garbage collection would visit them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    COUNT.checks = 0
    WRITERS.finish()  # a pending write would meet what this test patches, and its errors would count as this test's
    try:
        result = yield
    finally:
        WRITERS.finish()
    if COUNT.checks == 0:
        pytest.fail("the test passed without a single check", pytrace=False)
    return result
