"""The declaration of an operation kind, which is one frozen class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeVar

from attrs import evolve, fields, frozen

from .dtype import Array
from .errors import RuleError
from .flops import elementwise
from .types import CallTypes, TensorType
from .value import Value

T = TypeVar("T")
DECLARED: dict[str, type[Op]] = {}
"""Operation kinds by class name, filled as classes are defined; `ops.OPS` also has those not imported yet."""


@frozen
class Param(Value):
    """One operand of an operation kind, named by a parameter of `infer`."""

    name: str
    optional: bool
    variadic: bool


class Effect(Enum):
    """The side effect of running an operation."""

    NONE = "none"
    READ = "reads state"
    WRITE = "changes state"


@frozen
class Call(Value):
    """How an operation runs a subgraph: with which of its inputs (by position), and how the results are used.

    With `gives` the results are the operation's results (or what these are chosen from); with `again` they are also the
    operation's inputs for the next iteration. A `refusable` subgraph may turn out to be impossible for the shapes that
    it receives; that is an error only when it runs.
    """

    subgraph: int
    inputs: tuple[int, ...]
    gives: bool = True
    again: bool = False
    refusable: bool = False


class Stopping(Protocol):
    """How a kernel that may run for long learns that the run is to end."""

    @property
    def word(self) -> Array:
        """One int64, which stays where it is: not 0 once the run is to end."""

    def check(self) -> None:
        """Raise an ExecutionError that says why the run is to end, if it is."""


class Context(Protocol):
    """What the executor offers to an operation that is more than a function of its inputs."""

    @property
    def stop(self) -> Stopping | None:
        """Whether the run is to end; None if nobody can end it."""

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a subgraph of the same model. Raises ExecutionError beyond the maximum call depth."""

    @property
    def state(self) -> dict[Any, Any]:
        """State that lives as long as the execution: variables by name, tables, random generators."""

    @property
    def max_iterations(self) -> int | None:
        """The user's limit for the iterations of every loop; None for no limit."""

    def spend(self, work: int) -> None:
        """Account for work that was not known before the run. Raises RuleError beyond the limit."""

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Account for a tensor's bytes, and temporarily for those `beside` it. Raises RuleError beyond the limit."""


def _params(infer: Callable[..., Any]) -> tuple[Param, ...]:
    """The operands that `infer` takes. An operand is optional if it has a default or its type is `TensorType | None`.

    They are read from the function's code object, in a quarter of the time of `inspect.signature`, because a process
    does this for every kind that it imports.
    """
    code = inspect.unwrap(infer).__code__
    names = code.co_varnames[1 : code.co_argcount]
    types, defaults = infer.__annotations__, len(infer.__defaults__ or ())
    found = [
        Param(name, at >= len(names) - defaults or str(types.get(name)).endswith("| None"), False)
        for at, name in enumerate(names)
    ]
    if code.co_flags & inspect.CO_VARARGS:
        name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        found.append(Param(name, str(types.get(name)).endswith("| None"), True))
    return tuple(found)


def operands(names: str) -> tuple[Param, ...]:
    """Operands by name, in order; `name?` is optional. For kinds with many operands, whose `infer` takes `*given`."""
    return tuple(Param(name.rstrip("?"), name.endswith("?"), False) for name in names.split())


def with_absent(given: Sequence[T | None], count: int) -> tuple[T | None, ...]:
    """All `count` operands of such a kind: the given ones, then None for those that are absent at the end."""
    return (*given, *(None,) * (count - len(given)))


@frozen
class Op(Value):
    """An operation kind. Fields are attributes; the parameters of `infer` (or the `operands` in `params`) are operands.

    A subclass is a frozen attrs class and declares

    - `infer(self, x: TensorType, ...) -> TensorType | tuple[TensorType, ...]`: the results' element types and shapes,
      with None for a dimension that is not known yet. It raises RuleError for every operand, attribute or known element
      that breaks a rule. A parameter that may be None is optional; `*xs` takes any number. It is never called with an
      unranked type. Its results carry no quantisation, which is given with the model instead of inferred.
    - `evaluate(self, x: Array, ...) -> Array | tuple[Array, ...]`: the meaning, in NumPy, on real numbers.
    - `evaluate_quantized(self, types: CallTypes, x: Array, ...)`: optional; the meaning on stored integers, where it is
      more than dequantize, `evaluate`, quantize. Called when any operand or result is quantised.
    - `evaluate_in(self, context: Context, types: CallTypes, x: Array, ...)`: instead of `evaluate`, where the meaning
      needs subgraphs or state.
    - `prepare(self, x: Array | None, ...) -> Callable[..., ...] | None`: optional; `evaluate` as a function of those
      operands that are None, given all others, or None if nothing is gained. Called once with the operands that are
      constants, so that tables are not made in every run.
    - `sized(self, types: CallTypes) -> Callable[..., ...] | None`: optional; `evaluate`, without its checks, as a
      function of all operands of these types, which `infer` has accepted. None if nothing is gained. It is made once
      for all runs with the same shapes and the same elements of those operands whose values it reads from `types`; the
      function takes these from there, as the operands may have other elements meanwhile.

    `stored` says that `evaluate` only moves elements, so that quantised elements are moved without dequantising them.
    `shares` says that the only result is the memory of the first operand in another shape. `overwrites` says that the
    result is the first operand with parts overwritten, so that it may be updated in place. `carries` names the operands
    that are state (of a recurrent cell): their next values are the last results, in that order. Results of a kind with
    `outlasts` stay valid until the end of the run, in memory that nothing else uses. `finds` says that only `evaluate`
    tells the number of results and checks the elements it reads, so that runs do not infer types from these first.
    `callees` names the attributes that are subgraph numbers or tuples of them.
    """

    params: ClassVar[tuple[Param, ...]] = ()
    stored: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    overwrites: ClassVar[bool] = False
    carries: ClassVar[tuple[str, ...]] = ()
    outlasts: ClassVar[bool] = False
    finds: ClassVar[bool] = False
    callees: ClassVar[tuple[str, ...]] = ()
    effect: ClassVar[Effect] = Effect.NONE
    infer: ClassVar[Callable[..., Any]]
    evaluate: ClassVar[Callable[..., Any] | None] = None
    evaluate_quantized: ClassVar[Callable[..., Any] | None] = None
    evaluate_in: ClassVar[Callable[..., Any] | None] = None
    prepare: ClassVar[Callable[..., Callable[..., Any] | None] | None] = None
    sized: ClassVar[Callable[..., Callable[..., Any] | None] | None] = None

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        if "infer" not in cls.__dict__:
            return  # an abstract class of a family
        if "params" not in cls.__dict__:
            cls.params = _params(cls.infer)
        DECLARED[cls.__name__] = cls

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @property
    def label(self) -> str:
        """The name in messages and tables: the kind, with the member for an elementwise kind."""
        kind = getattr(self, "kind", None)
        return f"{type(self).__name__}.{kind.name}" if isinstance(kind, Enum) else type(self).__name__

    @property
    def subgraphs(self) -> tuple[int, ...]:
        """The subgraphs that this operation may run."""
        if not self.callees:
            return ()
        named = [getattr(self, name) for name in self.callees]
        return tuple(at for each in named for at in (each if isinstance(each, tuple) else (each,)))

    def calls(self, inputs: int) -> tuple[Call, ...]:
        """How the operation with this number of inputs runs its subgraphs; kinds that have `subgraphs` override it.

        Shape inference uses it to enter subgraphs: their inputs have the shapes on which all their callers agree.
        """
        return ()

    def refusal(self, sentence: str, results: tuple[TensorType, ...]) -> Op:
        """The operation that ends the run with `sentence`, for a refusable subgraph that is impossible (see `Call`)."""
        raise RuleError(sentence)

    def renumber(self, mapping: Mapping[int, int]) -> Op:
        """The same operation with each reference to subgraph `i` replaced by `mapping[i]`."""
        if not self.callees:
            return self
        named = {name: getattr(self, name) for name in self.callees}
        return evolve(
            self, **{k: tuple(mapping[i] for i in v) if isinstance(v, tuple) else mapping[v] for k, v in named.items()}
        )

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        """What is wrong with the subgraphs that this operation of the subgraph `caller` runs; None if nothing is."""
        return None

    def flops(self, types: CallTypes) -> int:
        """Additions and multiplications of one run on static types; overridden unless it is one per element."""
        return elementwise(types)

    def rounds(self, types: CallTypes) -> int:
        """Python loop iterations of `evaluate` on static types, each of a few NumPy calls; overridden if it loops."""
        return 0

    @property
    def packed(self) -> int:
        """How many elements one element of an operand encodes: larger results than usual are then worth folding."""
        return 1

    def informed(self, called: Sequence[Any]) -> Op:
        """The same operation, with what it needs to know about the subgraphs that it runs."""
        return self

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Field names and values, in declaration order."""
        return {f.name: getattr(self, f.name) for f in fields(type(self))}

    def check_arity(self, present: Sequence[bool]) -> None:
        """Raises RuleError unless the operands that are `present` (or absent) match the parameters."""
        variadic = any(p.variadic for p in self.params)
        if not variadic and len(present) > len(self.params):
            raise RuleError(f"has {len(present)} inputs, expected at most {len(self.params)}")
        for index, param in enumerate(self.params):
            if param.variadic:
                for at in range(index, len(present)):
                    if not present[at]:
                        raise RuleError(f"input {at} ({param.name}) is absent, expected a tensor")
            elif not param.optional and not (index < len(present) and present[index]):
                raise RuleError(f"input {index} ({param.name}) is absent, expected a tensor")


@frozen
class OnStored(Op):
    """An operation kind whose `evaluate` only moves elements; see `Op.stored`."""

    stored: ClassVar[bool] = True


def as_stored(op: Op, types: CallTypes, *xs: Array | None) -> Any:
    """An `evaluate_quantized` for kinds whose `evaluate` is correct on stored integers."""
    return None if op.evaluate is None else op.evaluate(*xs)


def require(condition: bool, rule: str) -> None:
    """Raises RuleError with the sentence `rule` unless `condition` holds."""
    if not condition:
        raise RuleError(rule)
