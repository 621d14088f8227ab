"""The runs of an execution: when a run is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from onert.backend import Program, TensorInfo
from onert.backend.tasks import Pool, Task
from onert.ir import Array, ExecutionError

from .exclusive import Body
from .setup import Setup
from .stop import Stop

if TYPE_CHECKING:
    from .asynchronous import RunFuture


class Runner:
    """The runs of one execution. Its `body` is an `Exclusive`'s: it is sent a timeout, or something else to call.

    The setup of a run is replaced in one step. `unready` says that the next run must check more: whether inputs must be
    copied, or whether it may run at all.
    """

    __slots__ = ("_beginning", "closed", "pending", "setup", "stop", "unready")

    def __init__(self, setup: Setup, stop: Stop) -> None:
        self.setup = setup
        self.stop = stop
        self.unready = True
        self.closed = False
        self.pending: RunFuture | None = None
        """The last background run."""
        self._beginning: RunFuture | None = None

    def body(self) -> Body:
        # Every statement in the loop adds to the run time of the smallest model.
        self._recover()
        stop = self.stop
        try:
            while True:
                asked = yield
                if (asked is not None or self.unready or stop.armed) and self._is_other(asked):
                    continue
                setup = self.setup
                setup.run(setup.frame)
        except GeneratorExit:
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        """Clean up after a call that failed or was interrupted."""
        begun = self._beginning
        if begun is not None:  # its caller was interrupted, so nobody has the future
            begun.cancel()
            self._beginning = None
        self.stop.disarm()
        self.setup.instance.recover()

    def _is_other(self, asked: Callable[[], object] | float | None) -> bool:
        """Handle anything sent but a plain run and return True; otherwise prepare a run and return False."""
        if callable(asked):
            asked()
            return True
        self.require_idle()
        if asked is not None or self.stop.armed:
            self.stop.start(asked)
        self.prepare()
        if asked is None:
            return False
        self._run_in_time()
        return True

    def _run_in_time(self) -> None:
        """A run that `stop` may end."""
        setup = self.setup
        setup.run(setup.frame)
        self.stop.disarm()

    def require_idle(self) -> None:
        """Raises ExecutionError if a run is not allowed now."""
        self.require_open()
        if self.awaits:
            raise ExecutionError("this execution is running; use one execution for each thread")

    def require_open(self) -> None:
        """Raises ExecutionError if the execution is closed."""
        if self.closed:
            raise ExecutionError("this execution is closed")

    @property
    def awaits(self) -> bool:
        """Whether a background run is active or pending."""
        return self.pending is not None and self.pending.goes_on

    def prepare(self) -> None:
        """Prepare a run: copy inputs that cannot be used in place. Raises ExecutionError if one is missing."""
        setup = self.setup
        if len(setup.given) != len(setup.frame.routine.subgraph.inputs):
            missing = [repr(info.name) for i, info in enumerate(setup.fit.inputs) if i not in setup.given]
            why = f"; shapes set earlier conflict with newer ones: {setup.outdated}" if setup.outdated else ""
            raise ExecutionError(f"no value is given for input {', '.join(missing)}{why}")
        for source, target in setup.copied.values():
            target[...] = source  # faster than `copyto`
        if setup.frame.handed:
            setup.replace_handed(elements=False)
        self.ready()

    def ready(self) -> None:
        """Mark that the next run needs no checks, unless inputs are copied for each."""
        setup = self.setup
        setup.ran = True
        self.unready = bool(setup.copied or setup.frame.handed)
        if self.closed or self.awaits:  # changed meanwhile; `close` sets `closed`, then `unready`
            self.unready = True

    def results(self, infos: Sequence[TensorInfo]) -> dict[str, Array]:
        """The outputs of the last run by name, which later runs do not change; `infos` are the model's."""
        setup = self.setup
        found = setup.results(infos)
        if setup.frame.handed:
            self.unready = True
        return found

    def begin(self, future: RunFuture, pool: Pool, task: Task[None], timeout: float | None) -> None:
        """Have the pool's thread do a run. Called by the body."""
        self.require_idle()
        self.stop.start(timeout)
        self.unready = True
        self._beginning = self.pending = future
        try:
            pool.give(task)
        except RuntimeError as error:
            raise ExecutionError(f"no thread can be started to run in the background ({error}); use execute") from error
        self._beginning = None

    def in_background(self) -> None:
        """The run that `begin` scheduled. Called by the body."""
        self.prepare()
        self._run_in_time()


def require_program(given: object) -> None:
    """Raises ExecutionError unless an execution is given a program."""
    if not isinstance(given, Program):
        raise ExecutionError(
            f"Execution is given a {type(given).__name__}, expected a program: onert.compile(onert.load(...))"
        )
