"""Simulate and measure plans."""

from __future__ import annotations

from collections.abc import Sequence

import onert
from onert.host.errors import ConfigurationError
from onert.host.host_manager import HostManager
from onert.host.partitioner import Wanted
from onert.ir import Package

from .calibration import FREE, Measurements, calibrate
from .model import Outcome
from .networks import described, workload
from .plan import Plan
from .search import fewest
from .simulate import simulate

_LONGEST = 3600.0


def run(plan: Plan, packages: Sequence[Package] | None = None) -> list[Outcome]:
    """Simulate a plan and return the outcome of each network. Raises errors of loading, partitioning and placing."""
    devices = described(plan.devices)
    packages = loaded(plan) if packages is None else packages
    comings = [network.stream.arrivals() for network in plan.networks]
    works = [
        workload(
            network.name,
            package,
            devices,
            arrivals,
            wanted=Wanted(network.parts, None, network.copies),
            batch=network.batch,
            timing=network.timing,
            link=plan.link,
            priorities=network.stream.drawn_priorities(arrivals.size),
            timeout=network.timeout,
            sequences=network.stream.drawn_sequences(arrivals.size),
        )
        for network, package, arrivals in zip(plan.networks, packages, comings, strict=True)
    ]
    return simulate(works, plan.host)


def measure(plan: Plan, seconds: float) -> dict[str, Measurements]:
    """Measure for `seconds` seconds each how long the runs of a plan's networks occupy its devices, on this machine.

    Each network is measured alone and without batches. Raises errors of devices, loading and partitioning.
    """
    if not 0 < seconds <= _LONGEST:
        raise ConfigurationError(
            f"the time for measuring is {seconds:g} s, expected more than 0 and at most {_LONGEST:g}"
        )
    found = {}
    for network, package in zip(plan.networks, loaded(plan), strict=True):
        with HostManager(plan.devices, FREE) as host:
            host.add_network(network.name, package, parts=network.parts, copies=network.copies)
            found[network.name] = calibrate(host, network.name, seconds)
    return found


def loaded(plan: Plan) -> list[Package]:
    """The models of a plan."""
    return [onert.load(network.model) for network in plan.networks]


def fewest_devices(plan: Plan, p99: float) -> tuple[int, Outcome]:
    """The fewest devices like the plan's first that meet a p99 in seconds, and the network's outcome with them. Raises
    ConfigurationError if no number does, and for a plan with several networks."""
    if len(plan.networks) != 1:
        raise ConfigurationError(f"the plan has {len(plan.networks)} networks, expected one with --p99")
    packages = loaded(plan)
    least = plan.networks[0].parts or 1
    return fewest(lambda count: run(plan.with_devices(max(count, least)), packages)[0], p99)
