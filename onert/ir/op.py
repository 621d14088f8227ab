"""The declaration of an operation kind: one frozen class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol

from attrs import evolve, fields, frozen

from .dtype import Array
from .errors import RuleError
from .flops import elementwise
from .types import CallTypes, TensorType
from .value import Value

DECLARED: dict[str, type[Op]] = {}
"""Operation kinds by class name, filled as the classes are defined; `ops.OPS` has also those that no one imported."""


@frozen
class Param(Value):
    """One operand of an operation kind, as the parameters of `infer` name it."""

    name: str
    optional: bool
    variadic: bool


class Effect(Enum):
    """What running an operation does besides giving results."""

    NONE = "none"
    READ = "reads state"
    WRITE = "changes state"


@frozen
class Call(Value):
    """How an operation runs a subgraph: with which of its inputs, by position, and what becomes of the results.

    With `gives` they are the operation's results (or what these are chosen from); with `again` they are also the
    operation's inputs for another round. One that is `refusable` may turn out to be impossible on the shapes that it
    is given: that is an error when it runs, and not before.
    """

    subgraph: int
    inputs: tuple[int, ...]
    gives: bool = True
    again: bool = False
    refusable: bool = False


class Context(Protocol):
    """What an operation that is more than a function of its inputs may ask of whoever runs it."""

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a subgraph of the same model; ExecutionError when the bound on depth is passed."""

    @property
    def state(self) -> dict[Any, Any]:
        """What lives as long as the execution: variables by name, tables, random generators."""

    @property
    def max_iterations(self) -> int | None:
        """The bound that the user set on every loop; None for no bound."""

    def spend(self, work: int) -> None:
        """Count work that was not known before the run; RuleError if it is too much."""

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Count bytes that a tensor comes to hold, and others that are needed for a moment; RuleError for too many."""


def _params(infer: Callable[..., Any]) -> tuple[Param, ...]:
    """The operands that `infer` takes. One may be absent that has a default or whose type is `TensorType | None`.

    They are read from the function's code, in a quarter of the time that `inspect.signature` takes: every kind that a
    process reads has some.
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
    """Operands by name, in order; `name?` may be absent. For kinds with very many, whose `infer` takes `*given`."""
    return tuple(Param(name.rstrip("?"), name.endswith("?"), False) for name in names.split())


@frozen
class Op(Value):
    """An operation kind: fields are attributes, the parameters of `infer` (or the `operands` of `params`) are operands.

    A subclass is a frozen attrs class and declares

    - `infer(self, x: TensorType, ...) -> TensorType | tuple[TensorType, ...]`: the results' element types and shapes,
      None if a dimension is not known yet. It raises RuleError for every operand, attribute or known element that
      breaks a rule. A parameter that may be None may be absent; `*xs` takes any number. It never sees an unranked
      type. A result carries no quantisation: that is given, not inferred.
    - `evaluate(self, x: Array, ...) -> Array | tuple[Array, ...]`: the meaning, in NumPy, on real numbers.
    - `evaluate_quantized(self, types: CallTypes, x: Array, ...)`: optional; the meaning on stored integers, where it is
      more than dequantize, `evaluate`, quantize. Called when any operand or result is quantised.
    - `evaluate_in(self, context: Context, types: CallTypes, x: Array, ...)`: instead of `evaluate`, where the meaning
      needs subgraphs or state.

    `stored` says that `evaluate` moves elements without looking at them, so that quantised ones move as they are
    stored. `shares` says that the only result is the first operand's very memory in another shape, `overwrites` that it
    is the first operand with parts of it overwritten, which may be done where that lies. `carries` names the operands
    that are state (of a recurrent cell): their next values are the last results, in that order. Results that `outlasts`
    marks are there until the run is whole, in memory that nothing else uses. `callees` names the attributes that are
    numbers of subgraphs, or tuples of such.
    """

    params: ClassVar[tuple[Param, ...]] = ()
    stored: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    overwrites: ClassVar[bool] = False
    carries: ClassVar[tuple[str, ...]] = ()
    outlasts: ClassVar[bool] = False
    callees: ClassVar[tuple[str, ...]] = ()
    effect: ClassVar[Effect] = Effect.NONE
    infer: ClassVar[Callable[..., Any]]
    evaluate: ClassVar[Callable[..., Any] | None] = None
    evaluate_quantized: ClassVar[Callable[..., Any] | None] = None
    evaluate_in: ClassVar[Callable[..., Any] | None] = None

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        if "infer" not in cls.__dict__:
            return  # an intermediate class of a family
        if "params" not in cls.__dict__:
            cls.params = _params(cls.infer)
        DECLARED[cls.__name__] = cls

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @property
    def label(self) -> str:
        """What messages and tables call this operation: the kind, or the member of an elementwise kind."""
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
        """How an operation with so many inputs runs its subgraphs; kinds that have `subgraphs` override it.

        Shapes are known beyond a call through it: a subgraph's inputs have the shapes that all its callers give it.
        """
        return ()

    def refusal(self, sentence: str, results: tuple[TensorType, ...]) -> Op:
        """What ends the run with a sentence, in place of a refusable subgraph that is impossible; see `Call`."""
        raise RuleError(sentence)

    def renumber(self, mapping: Mapping[int, int]) -> Op:
        """The same operation where subgraph `i` is called `mapping[i]`."""
        if not self.callees:
            return self
        named = {name: getattr(self, name) for name in self.callees}
        return evolve(
            self, **{k: tuple(mapping[i] for i in v) if isinstance(v, tuple) else mapping[v] for k, v in named.items()}
        )

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        """What is wrong with the subgraphs that this operation of the subgraph `caller` runs; None for nothing."""
        return None

    def flops(self, types: CallTypes) -> int:
        """Additions and multiplications of one run on static types; kinds that do more than one an element say so."""
        return elementwise(types)

    def rounds(self, types: CallTypes) -> int:
        """Rounds of Python's loops in `evaluate` on static types, each of a few NumPy calls; kinds that loop say so."""
        return 0

    @property
    def packed(self) -> int:
        """How many elements each element of an operand holds, so that constants of so many more are worth folding."""
        return 1

    def informed(self, called: Sequence[Any]) -> Op:
        """The same operation, knowing of the subgraphs that it runs what lets it do without them."""
        return self

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Field names and values, in order of declaration."""
        return {f.name: getattr(self, f.name) for f in fields(type(self))}

    def check_arity(self, present: Sequence[bool]) -> None:
        """RuleError unless operands that are `present` (or absent) fit the parameters."""
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
    """An operation kind whose `evaluate` moves elements without looking at them; see `Op.stored`."""

    stored: ClassVar[bool] = True


def as_stored(op: Op, types: CallTypes, *xs: Array | None) -> Any:
    """The `evaluate_quantized` of kinds whose `evaluate` is right on stored integers as they are."""
    return None if op.evaluate is None else op.evaluate(*xs)


def require(condition: bool, rule: str) -> None:
    """RuleError with the sentence `rule` unless `condition` holds."""
    if not condition:
        raise RuleError(rule)
