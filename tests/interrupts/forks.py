"""Forks while other threads load, compile and run; every child does the same.

    python -m interrupts.forks COUNT

The first forks happen before anything is imported. Prints how many children ended well, after the errors of others.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from patience import PATIENCE

import onert

DIGITS = Path(__file__).parents[2] / "nnpackage" / "examples" / "digits_float"
INPUT = np.zeros((1, 8, 8, 1), np.float32)


def work(executor: str) -> None:
    """Load, compile, run in the foreground and in the background."""
    program = onert.compile(onert.load(DIGITS), executor=executor, num_threads=2)
    with onert.Execution(program) as execution:
        wanted = execution.run([INPUT])
        execution.execute_async().result(PATIENCE)
        for name, found in wanted.items():
            assert np.array_equal(execution.get_output(name), found)


def child(cache: Path) -> None:
    """The child's work; it never returns."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    status = 1
    try:
        os.environ["ONERT_CACHE_DIR"] = str(cache)
        work("Parallel")
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def ended_well(number: int) -> bool:
    """Whether the child ends well; one that does not end is killed."""
    end = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return False


def main(arguments: Sequence[str]) -> None:
    count, dice, over = int(arguments[0]), random.Random(1), threading.Event()
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        os.environ["ONERT_CACHE_DIR"] = f"{folder}/parent"

        def load() -> None:
            turn = 0
            while not over.is_set():
                turn += 1
                os.environ["ONERT_CACHE_DIR"] = f"{folder}/{turn % 3}"  # sometimes cached, sometimes compiled
                work(("Linear", "Parallel")[turn % 2])

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        well = 0
        for number in range(count):
            time.sleep(dice.uniform(0.0, 0.02))
            forked = os.fork()
            if forked == 0:
                child(Path(folder) / f"{number % 5}")
            well += ended_well(forked)
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
        print(well)


if __name__ == "__main__":
    main(sys.argv[1:])
