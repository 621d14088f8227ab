"""Editing a subgraph: collect changes, then build a new subgraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from onert.ir import Array, Constant, DType, Operand, Operation, Quantization, StateUpdate, Subgraph, TensorType


class Edit:
    """Changes to one subgraph, applied together by `done`.

    Indices refer to the original subgraph; `operand` and `constant` return the indices of new operands, which can be
    used at once. Every operation keeps its place unless it is replaced or removed.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self._operands = list(subgraph.operands)
        self._redefined = False
        self._replaced: dict[int, tuple[Operation, ...]] = {}
        self._inserted: dict[int, list[Operation]] = {}
        self._redirected: dict[int, int] = {}
        self._outputs: tuple[int, ...] | None = None
        self._state: tuple[StateUpdate, ...] | None = None

    def operand(self, operand: Operand) -> int:
        """Add an operand and return its index."""
        self._operands.append(operand)
        return len(self._operands) - 1

    def like(self, operand: int, name: str = "") -> int:
        """Add an operand of the same type, which the caller has to define."""
        return self.operand(Operand(evolve(self.subgraph.type(operand), data=None), name))

    def constant(self, array: Array, dtype: DType | None = None, quantization: Quantization | None = None) -> int:
        """Add a constant."""
        type_ = TensorType(dtype or DType.from_numpy(array.dtype), array.shape, quantization)
        return self.operand(Operand(type_, data=Constant(array)))

    def redefine(self, operand: int, new: Operand) -> None:
        """Change the type or value of an operand."""
        self._operands[operand] = new
        self._redefined = True

    def replace(self, at: int, *operations: Operation) -> None:
        """Replace operation `at` by these operations."""
        self._replaced[at] = operations

    def remove(self, at: int) -> None:
        """Remove operation `at`. The caller must redirect its results, unless they are unused."""
        self._replaced[at] = ()

    def insert(self, at: int, operation: Operation) -> None:
        """Insert an operation before operation `at`, or at the end if `at` is the number of operations."""
        self._inserted.setdefault(at, []).append(operation)

    def inline(self, at: int, graph: Subgraph, given: Sequence[int], results: Sequence[int]) -> None:
        """Replace operation `at` by a graph's operations on these operands, producing these results. They get the
        location of the replaced operation."""
        operation = self.subgraph.operations[at]
        number = dict(zip(graph.inputs, given, strict=True))
        aliases: list[tuple[int, int]] = []
        for result, output in zip(results, graph.outputs, strict=True):
            if output in graph.definitions and output not in number:
                number[output] = result
            else:
                aliases.append((result, output))
        number |= {i: self.operand(operand) for i, operand in enumerate(graph.operands) if i not in number}
        for result, output in aliases:
            self.redirect(result, number[output])
        inlined = (
            evolve(each.with_operands(number.__getitem__), location=operation.location) for each in graph.operations
        )
        self.replace(at, *inlined)

    def redirect(self, operand: int, to: int) -> None:
        """Let all readers of `operand` (operations, outputs and state updates) read `to` instead."""
        self._redirected[operand] = to

    def end_with(self, outputs: Sequence[int], state: Sequence[StateUpdate]) -> None:
        """Replace the outputs and state updates."""
        self._outputs, self._state = tuple(outputs), tuple(state)

    def done(self) -> Subgraph:
        """The edited subgraph, with operands renumbered and unreferenced ones dropped.

        Returns the original object if no change was requested.
        """
        if not (self._redefined or self._replaced or self._inserted or self._redirected or self._outputs is not None):
            return self.subgraph
        operations = [self._redirect(operation) for operation in self._edited()]
        outputs = self.subgraph.outputs if self._outputs is None else self._outputs
        state = self.subgraph.state if self._state is None else self._state
        return compact(
            evolve(
                self.subgraph,
                operands=tuple(self._operands),
                operations=tuple(operations),
                outputs=tuple(self._target(o) for o in outputs),
                state=tuple(StateUpdate(u.variable, self._target(u.source)) for u in state),
            )
        )

    def _edited(self) -> list[Operation]:
        found: list[Operation] = []
        for at, operation in enumerate(self.subgraph.operations):
            found += self._inserted.get(at, ())
            found += self._replaced.get(at, (operation,))
        return found + self._inserted.get(len(self.subgraph.operations), [])

    def _redirect(self, operation: Operation) -> Operation:
        found = operation.with_inputs(self._target)
        return operation if found.inputs == operation.inputs else found

    def _target(self, operand: int) -> int:
        passed = []
        while operand in self._redirected:
            passed.append(operand)
            operand = self._redirected[operand]
        self._redirected.update(dict.fromkeys(passed, operand))  # so that a long chain is followed once
        return operand


def compact(subgraph: Subgraph) -> Subgraph:
    """The subgraph without unreferenced operands; the same object if there are none."""
    mentioned = {*subgraph.inputs, *subgraph.outputs}
    for update in subgraph.state:
        mentioned |= {update.variable, update.source}
    for operation in subgraph.operations:
        mentioned |= {*operation.used, *operation.outputs}
    if len(mentioned) == len(subgraph.operands):
        return subgraph
    kept = sorted(mentioned)
    number = {old: new for new, old in enumerate(kept)}
    return renumbered(subgraph, number, tuple(subgraph.operands[old] for old in kept))


def renumbered(subgraph: Subgraph, number: Mapping[int, int], operands: tuple[Operand, ...]) -> Subgraph:
    """The subgraph on the new `operands`, where operand `i` becomes operand `number[i]`."""
    return evolve(
        subgraph,
        operands=operands,
        operations=tuple(operation.with_operands(number.__getitem__) for operation in subgraph.operations),
        inputs=tuple(number[i] for i in subgraph.inputs),
        outputs=tuple(number[o] for o in subgraph.outputs),
        state=tuple(StateUpdate(number[u.variable], number[u.source]) for u in subgraph.state),
    )


def only_user(subgraph: Subgraph, operand: int) -> int | None:
    """The only operation that reads `operand`, if it reads it once; None if there are other readers or it is kept."""
    users = subgraph.uses.get(operand, ())
    if len(users) != 1 or operand in subgraph.kept:
        return None
    return None if operand in subgraph.repeated else users[0]


def definer(subgraph: Subgraph, operand: int | None) -> Operation | None:
    """The operation that defines `operand`; None for inputs, constants, variables and absent operands."""
    at = None if operand is None else subgraph.definitions.get(operand)
    return None if at is None else subgraph.operations[at]
