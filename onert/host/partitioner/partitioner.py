"""`Partitioner`: partitions a network among devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from onert.backend import Program
from onert.host.dag import DAG
from onert.host.errors import PartitionError
from onert.host.memory import program_memory
from onert.ir import Package
from onert.ir.value import Value

from .assignment import Kind, assigned, regions
from .balance import divide, least_parts
from .build import Part, built, sub_package
from .costs import Seconds, measured, roofline
from .units import UnitGraph, unit_graph
from .user import PartitionConfig, parts_of
from .validation import validate
from .whole import whole

Compile = Callable[[Package, str, bool], Program]
"""Compiles a package for the devices of a backend. The last argument: whether the passes have run."""


@frozen
class Wanted(Value):
    """How to partition and copy a network.

    `parts`: their number, for a network that runs on one backend. `config`: the user's own division. `copies`: the
    number of copies of the whole network, each on its own devices; None: as many as there are devices for. With
    `profile`, times are measured on this machine instead of estimated.
    """

    parts: int | None = None
    config: PartitionConfig | None = None
    copies: int | None = 1
    profile: bool = False


@frozen(eq=False)
class Partitioned:
    """A partitioned network, and programs of sub-networks that were compiled on the way, by node index."""

    dag: DAG
    programs: dict[int, Program]


class Partitioner:
    """Partitions networks among devices of several kinds, in order of preference.

    A network is divided as the user specifies; otherwise by backend if it needs several; otherwise into the requested
    number of balanced parts; otherwise, only if it does not fit one device, into the fewest parts that fit. The slowest
    part, including its transfers, is made as fast as possible; then the bytes between parts are minimised. Fusion
    groups stay whole, so that results are bit for bit the same as those of the undivided network.
    """

    def __init__(self, kinds: Sequence[Kind], compile_: Compile) -> None:
        self._kinds = tuple(kinds)
        self._compile = compile_

    def partition(self, name: str, package: Package, wanted: Wanted = Wanted()) -> Partitioned:
        """Divide the network into parts on logical devices. Raises PartitionError if that is not possible."""
        parts, profile = wanted.parts, wanted.profile
        first = self._kinds[0]
        program = self._compile(package, first.name, False)
        if wanted.config is not None:
            found = self._by_hand(name, program, wanted.config, profile=profile)
        else:
            graph = unit_graph(program)
            kinds = assigned(name, graph, self._kinds)
            if set(kinds) == {0}:
                found = self._of_one_kind(name, package, program, graph, parts, profile=profile)
            else:
                if parts is not None:
                    raise PartitionError(
                        f"network {name!r}: {parts} partitions are requested, but its operations need several backends"
                    )
                found = self._heterogeneous(name, package, program, graph, kinds, profile=profile)
        if wanted.copies != 1:
            found = evolve(found, dag=self._saturated(found.dag, wanted.copies))
        validate(found.dag, self._kinds)
        return found

    def _by_hand(self, name: str, program: Program, config: PartitionConfig, *, profile: bool) -> Partitioned:
        config.check(name, [kind.name for kind in self._kinds])
        graph = unit_graph(program, grouped=False)
        seconds = self._seconds(program, graph, self._kinds[0], profile=profile)
        return Partitioned(built(name, program, graph, parts_of(name, graph, seconds, config, self._kinds[0].name)), {})

    def _of_one_kind(
        self, name: str, package: Package, program: Program, graph: UnitGraph, parts: int | None, *, profile: bool
    ) -> Partitioned:
        kind = self._kinds[0]
        if parts is None and program_memory(program).total <= kind.room(1):
            return Partitioned(whole(name, package, program, kind.name), {0: program})
        if parts == 1:
            return Partitioned(whole(name, package, program, kind.name), {0: program})
        seconds = self._seconds(program, graph, kind, profile=profile)
        divided, note = self._divided(name, graph, seconds, kind, parts)
        made = [Part(f"{name}_part{at}", ops, kind.name, took, (at,)) for at, (ops, took) in enumerate(divided)]
        return Partitioned(built(name, program, graph, made, [note]), {})

    def _divided(
        self, name: str, graph: UnitGraph, seconds: Seconds, kind: Kind, parts: int | None
    ) -> tuple[list[tuple[tuple[int, ...], float]], str]:
        """The operations of each part with the time of a run, and a message about the division."""
        count = self._fitting_count(name, graph, seconds, kind) if parts is None else parts
        try:
            found = divide(graph, seconds, count, kind.info.peak_link_bw, kind.room(count))
        except PartitionError as error:
            raise PartitionError(f"network {name!r}: {error}") from error
        note = (
            f"{kind.name}: {count} partitions, the slowest takes {found.slowest * 1e3:.3g} ms including transfers, "
            f"{found.cut_bytes} bytes pass between them"
        )
        divided = [
            (tuple(sorted(at for unit in part for at in graph.units[unit])), sum(seconds[unit] for unit in part))
            for part in found.parts
        ]
        return divided, note

    def _fitting_count(self, name: str, graph: UnitGraph, seconds: Seconds, kind: Kind) -> int:
        """The fewest partitions that fit into the memory of the same number of devices."""
        needed = 1
        while True:
            try:
                least = least_parts(graph, seconds, kind.room(needed))
            except PartitionError as error:
                raise PartitionError(f"network {name!r}: {error}") from error
            if least > len(kind.infos):
                raise PartitionError(
                    f"network {name!r}: the number of given {kind.name!r} devices ({len(kind.infos)}) is fewer than "
                    f"the required minimal partitions ({least}) of at most {kind.room(needed)} bytes"
                )
            if least <= needed:
                return needed
            needed += 1

    def _heterogeneous(
        self,
        name: str,
        package: Package,
        program: Program,
        graph: UnitGraph,
        kinds: Sequence[int],
        *,
        profile: bool,
    ) -> Partitioned:
        found = regions(graph, kinds)
        if len(found) == 1:
            kind = self._kinds[found[0][0]]
            own = self._compile(package, kind.name, False)
            if program_memory(own).total <= kind.room(1):
                return Partitioned(whole(name, package, own, kind.name), {0: own})
        made: list[Part] = []
        notes: list[str] = []
        for index, region in found:
            kind = self._kinds[index]
            operations = tuple(sorted(at for unit in region for at in graph.units[unit]))
            inner, _, _ = sub_package(graph, operations, f"{name}/{len(made)}")
            own = self._compile(inner, kind.name, True)
            if program_memory(own).total <= kind.room(1):
                seconds = self._seconds(own, unit_graph(own), kind, profile=profile)
                made.append(Part("", operations, kind.name, sum(seconds)))
                continue
            within = unit_graph(own)
            divided, note = self._divided(name, within, self._seconds(own, within, kind, profile=profile), kind, None)
            made += [Part("", tuple(operations[at] for at in ops), kind.name, took) for ops, took in divided]
            notes.append(note)
        named = [evolve(part, name=f"{name}_part{at}", logical_devices=(at,)) for at, part in enumerate(made)]
        dag = built(name, program, graph, named, notes)
        return Partitioned(self._on_few_devices(dag), {})

    def _on_few_devices(self, dag: DAG) -> DAG:
        """Reduce the logical devices if a backend has more partitions than devices.

        Each partition, longest first, goes to the least busy device with enough memory. Partitions that run one after
        another lose nothing by sharing a device.
        """
        places: dict[int, int] = {}
        start = 0
        for kind in self._kinds:
            own = [at for at, node in enumerate(dag.nodes) if node.backend_name == kind.name]
            count = min(len(own), len(kind.infos))
            free = sorted((info.available_memory for info in kind.infos), reverse=True)[:count]
            busy = [0.0] * count
            for at in sorted(own, key=lambda at: (-_took(dag, at), at)):
                fits = [i for i in range(count) if dag.nodes[at].size <= free[i]]
                if not fits:
                    raise PartitionError(
                        f"network {dag.name!r}: the number of given {kind.name!r} devices ({len(kind.infos)}) is fewer "
                        f"than the required minimal partitions ({len(own)}) of {dag.nodes[at].size} bytes and less"
                    )
                chosen = min(fits, key=lambda i: (busy[i], i))
                busy[chosen] += _took(dag, at)
                free[chosen] -= dag.nodes[at].size
                places[at] = start + chosen
            start += count
        nodes = tuple(evolve(node, logical_devices=(places[at],)) for at, node in enumerate(dag.nodes))
        return evolve(dag, nodes=nodes)

    def _saturated(self, dag: DAG, copies: int | None) -> DAG:
        """`copies` copies of the network on separate devices; None: as many as possible."""
        used = {logical: node.backend_name for node in dag.nodes for logical in node.logical_devices}
        most = min(
            len(kind.infos) // sum(backend == kind.name for backend in used.values())
            for kind in self._kinds
            if kind.name in used.values()
        )
        count = most if copies is None else copies
        if count > most or count < 1:
            raise PartitionError(
                f"network {dag.name!r}: {count} copies on {len(used)} devices each are requested, expected 1 to {most}"
            )
        step = max(used) + 1
        nodes = (
            evolve(node, logical_devices=tuple(d + i * step for i in range(count) for d in node.logical_devices))
            for node in dag.nodes
        )
        return evolve(dag, nodes=tuple(nodes))

    def _seconds(self, program: Program, graph: UnitGraph, kind: Kind, *, profile: bool) -> Seconds:
        return measured(program, graph) if profile else roofline(graph, kind.info)


def _took(dag: DAG, at: int) -> float:
    estimate = dag.nodes[at].estimate
    return 0.0 if estimate is None else estimate.seconds
