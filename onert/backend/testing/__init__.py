"""The conformance kit: tests for a third party's backend that need no compiler and no executor.

```python
import pytest
from onert.backend.testing import CLAIMS, TRIALS, Skipped, align, hold

@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_aligned_with_the_reference(trial):
    try:
        align(MyBackend(), trial)
    except Skipped as reason:
        pytest.skip(str(reason))

@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_contract(claim):
    hold(MyBackend(), claim)
```
At a shell, `python -m onert.backend.testing package.module:Backend` prints the same as a table.
"""

from .claims import CLAIMS, hold
from .trial import Misaligned, Skipped, Trial, align
from .trials import TRIALS

__all__ = ["CLAIMS", "TRIALS", "Misaligned", "Skipped", "Trial", "align", "hold"]
