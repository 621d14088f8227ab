"""An execution can be closed from anywhere, at any time and any number of times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

PREPARED = """
import faulthandler, os, sys, threading, time
import numpy as np
import onert
from onert.exec import RunCancelledError
from onert.ir import ExecutionError
from interrupts.operations import ONES, counter
from patience import PATIENCE
faulthandler.dump_traceback_later(PATIENCE, exit=True)
program = onert.compile(counter(), backends=("reference",), num_threads=1)
execution = onert.Execution(program)
execution.set_input(0, ONES)
def count():
    return execution.get_output(0)[0]
"""

WAYS: dict[str, tuple[str, str]] = {
    "by a callback that began another run": (
        """
called = threading.Event()
def again(future):
    execution.execute_async()
    execution.close()
    print(int(count()))
    called.set()
execution.execute_async(again).result(PATIENCE)
called.wait(PATIENCE)  # callbacks are called after those who wait are told
execution.close()
""",
        "2",
    ),
    "by a callback that began one and waits for it": (
        """
called = threading.Event()
def again(future):
    execution.execute_async().result(PATIENCE)
    print(int(count()))
    execution.close()
    called.set()
execution.execute_async(again).result(PATIENCE)
called.wait(PATIENCE)
execution.close()
""",
        "2",
    ),
    "twice, by several threads, during a run": (
        """
execution.execute_async()
threads = [threading.Thread(target=execution.close) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join(PATIENCE)
execution.close()
print(int(count()), any(thread.is_alive() for thread in threads))
""",
        "1 False",
    ),
    "while another thread runs, and cancels": (
        """
def run():
    while True:
        try: execution.execute()
        except RunCancelledError: continue  # cancelled before it was closed: the next run finds it closed
        except ExecutionError as error: return print("closed" in str(error))
thread = threading.Thread(target=run)
thread.start()
time.sleep(0.05)
closing = threading.Thread(target=execution.close)
closing.start()
try:
    execution.cancel()
finally:
    closing.join(PATIENCE); thread.join(PATIENCE)
""",
        "True",
    ),
    "by its own run": (
        """
from onert.exec.observers import Observer
class Closes(Observer):
    def begins(self, work, tensors):
        try: observed.close()
        except ExecutionError as error: said.append("closed by its own run" in str(error))
said = []
observed = onert.Execution(program, observers=(Closes(),))
observed.run([ONES])
observed.close()
print(said[0])
""",
        "True",
    ),
    "by a finalizer as it is dropped during a run": (
        """
future = execution.execute_async()
del execution
print(future.result(PATIENCE))
""",
        "None",
    ),
    "when the interpreter ends": (
        """
import atexit
atexit.register(execution.close)
execution.execute_async()
print("ended")
""",
        "ended",
    ),
    "in a child, the run having stayed with the parent": (
        """
from onert.exec.observers import Observer
begun, forked = threading.Event(), threading.Event()
class Slow(Observer):
    def begins(self, work, tensors):
        begun.set()
        forked.wait()
slow = onert.Execution(program, observers=(Slow(),))
slow.set_input(0, ONES)
future = slow.execute_async()
begun.wait()
child = os.fork()
forked.set()
if child == 0:
    try: future.result(PATIENCE)
    except ExecutionError as error: print("stayed with the process" in str(error), flush=True)
    slow.run([ONES])
    slow.close()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), future.result(PATIENCE))
""",
        "True\\n0 None",
    ),
    "where no thread can be had any more": (
        """
import atexit
from onert.backend import tasks
def late():
    try: execution.execute_async()
    except ExecutionError as error: print("use execute" in str(error))
    execution.execute()
    execution.close()
    print(int(count()))
atexit.unregister(tasks.finish)
atexit.register(late)
atexit.register(tasks.finish)
""",
        "True\\n1",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_execution_can_be_closed(way: str, tmp_path: Path) -> None:
    script, wanted = WAYS[way]
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + script],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "ONERT_CACHE_DIR": str(tmp_path)},  # `-c` looks for modules in the working directory
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == wanted.replace("\\n", "\n")
    assert not done.stderr
