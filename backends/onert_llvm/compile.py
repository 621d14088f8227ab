"""What runs natively, how operations are fused, and the kernels of sequences. A cached program needs none of this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Operations
from functools import partial
from typing import TYPE_CHECKING

from onert.backend import Group, Sequence, Settings
from onert.backend.cache import Cache
from onert.ir import CallTypes, Op, Operation, Subgraph
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.reduction.reduce import Reduce
from onert.ir.process import imports
from onert.ir.symbolic.cases import cases_of
from onert.ir.symbolic.instructions import NoInstructionError
from onert.ir.symbolic.leaks import LeakError
from onert.ir.symbolic.trace import Trace
from onert_llvm.codegen.kernel_abi import KernelSpec, build
from onert_llvm.codegen.loading import llvm_codegen
from onert_llvm.command.command import Lowered
from onert_llvm.lower.command_builder import Each, Lowering, call_in_order
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.lower.elementwise.op_to_expression import rule_of
from onert_llvm.lower.rule import Rule
from onert_llvm.rules.float_rules import ANY, COMMON, ELEMENT_WISE, FLOATS, INDICES
from onert_llvm.runtime.native_kernel import NativeKernel
from onert_llvm.runtime.serialized_kernel import SerializedKernel, SerializedStretch, serialized
from onert_llvm.schedule.choices import Choices
from onert_llvm.target.isa import Isa, target

from .codegen import kernel_compiler
from .rules import fusion_groups as fusion
from .rules import integer_rules

if TYPE_CHECKING:
    from onert_llvm.runtime.stretched_kernel import StretchedKernel


def rule(op: Op, types: CallTypes) -> Rule:
    """The rule for an operation: the first that applies, else the first of its kind, whose `why_not` has the reason."""
    return _chosen(op, types)[0]


def _chosen(op: Op, types: CallTypes) -> tuple[Rule, str | None]:
    """The rule for an operation, and why it does not apply (None if it does)."""
    if _has_empty_results(op, types):
        return _NO_COMMAND, None
    refused = []
    for each in _rules(op, types):
        reason = each.why_not(op, types)
        if reason is None:
            return each, None
        refused.append((each, reason))
    return refused[0]


def _has_empty_results(op: Op, types: CallTypes) -> bool:
    """Whether no result has elements and there are no indices to check."""
    kind = type(op)
    if kind not in COMMON or any(0 not in t.shape or t.dtype.is_handle for t in types.outputs):
        return False
    return kind not in INDICES or 0 in types.input(INDICES[kind]).shape


_NO_COMMAND = Rule(lambda op, types: None, lambda lowering, operations: None)
"""The rule for such operations: native, without a command."""


def _rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    kind = type(op)
    if kind in ANY:
        yield ANY[kind]
    if kind not in COMMON:
        yield from imports.module("onert_llvm.rules.lazy_rules").rules(kind, why_not, rule_of_group, _groups)
    yield from integer_rules.rules(op, types)
    yield FLOATS.get(kind, ELEMENT_WISE)


def why_not(operation: Operation, types: CallTypes) -> str | None:
    """Why an operation is not run natively; None if it is."""
    if not types.outputs:
        return "it has no results"
    if any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)):
        return "a shape is not known before the run"
    return _chosen(operation.op, types)[1]


def most_threads(operation: Operation, types: CallTypes) -> int | None:
    """The most threads that can share an operation; one if each step depends on the one before, None for no limit."""
    if type(operation.op) in COMMON:
        return None
    most: int | None = imports.module("onert_llvm.rules.lazy_rules").most_threads(operation.op)
    return most


def import_lowering(operation: Operation, types: CallTypes) -> None:
    """Import the modules that lower this operation, if it runs natively."""
    if why_not(operation, types) is None:
        rule(operation.op, types).import_lowering()


def fuse(sequence: Sequence) -> tuple[Group, ...]:
    """The operations of a sequence that run as one. Independent of the target, since a bundle may be for several."""
    return _groups(sequence.subgraph, sequence.operations)


def _groups(subgraph: Subgraph, operations: Operations[int]) -> tuple[Group, ...]:
    rules = {at: rule(subgraph.operations[at].op, subgraph.types(subgraph.operations[at])) for at in operations}
    anchors = {at for at, found in rules.items() if found.anchor}
    chained = {at for at, found in rules.items() if found is ELEMENT_WISE and not _checks(subgraph, at)}
    tabled = {at for at, found in rules.items() if found.tabled}
    return fusion.groups(subgraph, operations, anchors, chained, tabled)


def rule_of_group(subgraph: Subgraph, operations: Operations[int]) -> Rule:
    """The rule for a group: its first operation's, unless it is a sum of bytes, a function of a single byte, or an
    attention that reads through transposes."""
    first, last = (subgraph.operations[operations[i]] for i in (0, -1))
    if isinstance(first.op, Cast) and isinstance(last.op, Reduce):
        return integer_rules.WIDENED
    if len(operations) > 1 and any(subgraph.type(i).dtype in BYTES for i in first.used):
        tabulates: bool = imports.module("onert_llvm.lower.elementwise.byte_chains").tabulates(subgraph, operations)
        if tabulates:
            return integer_rules.CHAIN
    if isinstance(first.op, Transpose) and len(operations) > 1:
        first = next(o for o in map(subgraph.operations.__getitem__, operations) if isinstance(o.op, BatchMatMul))
    return rule(first.op, subgraph.types(first))


def _checks(subgraph: Subgraph, at: int) -> bool:
    """Whether an operation reports bad elements and therefore needs a kernel of its own."""
    operation = subgraph.operations[at]
    return isinstance(operation.op, Binary) and rule_of(operation.op, subgraph.types(operation)) is not None


def begin(settings: Settings, store: Cache) -> None:
    """Start generating the code that runs all kernels, so that the code generator is warm for the first kernel."""
    kernel_compiler.begin(target(settings.target, settings.precision), settings.num_threads, store)


def generate(sequence: Sequence, settings: Settings, store: Cache, choices: Choices | None = None) -> NativeKernel:
    """The kernel of a sequence, with its code loaded; `choices` override the cost models."""
    isa = target(settings.target, settings.precision)
    with kernel_compiler.KernelBuild(isa, settings.num_threads, store) as kernel_build:
        commands = lowered(sequence, isa, settings, kernel_build.begin, kernel_build.run_all, choices)
        kernels, drivers = kernel_build.addresses(commands.specs)
    return NativeKernel(commands, kernels, drivers, settings.num_threads)


def stretch(kernel: NativeKernel, trace: Trace, store: Cache) -> StretchedKernel | None:
    """A kernel with symbolic numbers for all lengths that the trace covers; None if the code depends on the length."""
    try:
        numbers = partial(kernel_compiler.number_functions, target("native"), store)
        module = imports.module("onert_llvm.runtime.stretched_kernel")
        found: StretchedKernel = module.stretched(kernel, trace, numbers)
        return found
    except NoInstructionError:
        return None


def serialize(kernel: NativeKernel, store: Cache) -> SerializedKernel | None:
    """The kernel with its code from the store; None for a deserialized kernel, which has only addresses of its code."""
    specs = kernel.lowered.specs
    if kernel.kernels.keys() - specs.keys():
        return None
    isa = next(iter(specs.values())).isa if specs else target("native")
    objects = dict(zip(specs, kernel_compiler.objects(list(specs.values()), store), strict=True))
    return serialized(kernel, objects, isa.triple, kernel_compiler.driver_objects(isa, kernel.threads, store))


def serialize_stretch(kernel: StretchedKernel, store: Cache) -> SerializedStretch | None:
    """The stretched kernel with its code from the store; None if it cannot be stored."""
    isa = target("native")
    code = kernel_compiler.number_object(isa, store)
    found: SerializedStretch | None = imports.module("onert_llvm.runtime.serialized_stretch").serialized(
        kernel, isa.triple, code
    )
    return found


def shown(kernel: NativeKernel, form: str) -> str:
    """The functions of a kernel as text: LLVM IR for "ir", the target's assembly language for "asm"."""
    specs = kernel.lowered.specs.values()
    texts = ((str(build(spec)), spec.isa) for spec in specs)
    return "\n".join(llvm_codegen().assembly(text, isa) if form == "asm" else text for text, isa in texts)


def _nothing(specs: Iterable[KernelSpec]) -> None:
    """The default `begin`: starts no kernel before all are known."""


def lowered(
    sequence: Sequence,
    isa: Isa,
    settings: Settings,
    begin: Callable[[Iterable[KernelSpec]], None] = _nothing,
    each: Each = call_in_order,
    choices: Choices | None = None,
    compact: bool = False,
) -> Lowered:
    """The commands of a sequence for a target; `begin` gets new kernels as they appear, `each` makes constants.

    Raises LeakError, naming the operations, if a kernel's description contains a symbolic number.
    """
    lowering = Lowering(sequence.subgraph, isa, settings, choices, compact)

    read = (i for operation in sequence.body for i in operation.used)
    cases = cases_of(d for i in read for d in sequence.subgraph.type(i).shape)

    def lower(group: Group) -> None:
        lowering.begin(group.operations[0])
        try:
            rule_of_group(sequence.subgraph, group.operations).lower_by_cases(lowering, group.operations, cases)
        except LeakError as error:
            place = ", ".join(str(lowering.operation(at)) for at in group.operations)
            raise LeakError(f"{place}: {error}") from error
        begin(lowering.new_kernels())

    for group in sequence.groups:
        lowering.assign_threads(group.threads)
        lower(group)
    if len({group.threads for group in sequence.groups}) > 1:
        lowering.restart_for_all_threads()
        for group in sequence.groups:
            lower(group)
    return lowering.finish(each)
