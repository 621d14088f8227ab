"""A pytest plugin that records which tests execute which lines in some folders.

`ONERT_REACH` names the file to write, `ONERT_REACHED` the folders, separated by the path separator. The file contains
{"tests": [[id, processor seconds]], "lines": {file: {line: [indices of tests]}}}, without what runs while modules are
imported. For each line the fastest tests are recorded.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

MOST = 40
"""The most tests recorded for one line per test file."""


class Reach:
    """Records what each test executes."""

    def __init__(self, target: Path, folders: list[str]) -> None:
        self._target = target
        self._coverage = coverage.Coverage(data_file=None, config_file=False, source=folders)
        self._coverage.start()
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._coverage.switch_context(str(len(self._seconds)))
        begun = time.process_time()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.process_time() - begun
            self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        seconds = list(self._seconds.values())
        lines: dict[str, dict[int, list[int]]] = {}
        for path in sorted(data.measured_files()):
            file = os.path.relpath(path)
            for line, contexts in sorted(data.contexts_by_lineno(path).items()):
                found = sorted((int(each) for each in contexts if each), key=lambda at: (seconds[at], at))
                if found:
                    lines.setdefault(file, {})[line] = found[:MOST]
        found_all = {"tests": list(self._seconds.items()), "lines": lines}
        self._target.write_text(json.dumps(found_all), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    folders = os.environ["ONERT_REACHED"].split(os.pathsep)
    config.pluginmanager.register(Reach(Path(os.environ["ONERT_REACH"]), folders))
