"""A server's statistics, for Prometheus and for the page. Source of the text form: Prometheus, "Exposition formats"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onert.host import HostStatistics

from .service import Service

_HEAD = "onert_"
Labels = tuple[tuple[str, str], ...]
Samples = dict[Labels, float]


def metrics(service: Service) -> str:
    """All metrics in Prometheus's text format."""
    found = service.host.statistics()
    return "\n".join([*_families(found, service.under_way), ""])


def _families(found: HostStatistics, under_way: int) -> Iterable[str]:
    networks = found.networks
    outcomes: Samples = {
        (("model", name), ("outcome", outcome)): count
        for name, n in networks.items()
        for outcome, count in (
            ("success", n.requests_succeeded),
            ("failure", n.requests_failed),
            ("refused", n.requests_refused),
        )
    }
    yield from _family("requests_total", "counter", "Finished requests.", outcomes)
    retried: Samples = {(("model", name),): n.runs_retried for name, n in networks.items()}
    yield from _family("runs_retried_total", "counter", "Runs retried because their device was lost.", retried)
    active: Samples = {(("model", name),): n.requests_active for name, n in networks.items()}
    yield from _family("requests_active", "gauge", "Running requests.", active)
    waiting: Samples = {(("model", name),): n.requests_waiting for name, n in networks.items()}
    yield from _family("requests_waiting", "gauge", "Requests in the queue.", waiting)
    name = f"{_HEAD}request_seconds"
    yield f"# HELP {name} Seconds from request to answer, of successful requests."
    yield f"# TYPE {name} summary"
    for model, n in networks.items():
        for quantile, seconds in (("0.5", n.latency_p50), ("0.9", n.latency_p90), ("0.99", n.latency_p99)):
            yield f"{name}{_labels((('model', model), ('quantile', quantile)))} {seconds:g}"
        yield f"{name}_sum{_labels((('model', model),))} {n.latency_mean * n.requests_succeeded:g}"
        yield f"{name}_count{_labels((('model', model),))} {n.requests_succeeded}"
    yield from _family("queue_size", "gauge", "Requests in the queue, for all models.", {(): found.queue_size})
    yield from _family("queue_limit", "gauge", "Maximum number of requests in the queue.", {(): found.max_queue_size})
    yield from _family("inferences_under_way", "gauge", "Inferences in progress.", {(): under_way})
    load: Samples = {(("device", name),): d.load for name, d in found.devices.items()}
    yield from _family("device_load", "gauge", "Active and waiting runs of a device.", load)
    memory: Samples = {
        (("device", name), ("state", state)): nbytes
        for name, d in found.devices.items()
        for state, nbytes in (("used", d.used_memory), ("available", d.available_memory))
    }
    yield from _family("device_memory_bytes", "gauge", "Memory of a device.", memory)


def _family(name: str, kind: str, what: str, samples: Samples) -> Iterable[str]:
    yield f"# HELP {_HEAD}{name} {what}"
    yield f"# TYPE {_HEAD}{name} {kind}"
    for labels, value in samples.items():
        yield f"{_HEAD}{name}{_labels(labels)} {value}"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    found = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{found}}}" if found else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def status(service: Service) -> dict[str, Any]:
    """The data of the page: models with their statistics, devices, and the queue."""
    found = service.host.statistics()
    models = []
    for each in service.index():
        counted = found.networks.get(each["name"])
        shown: dict[str, Any] = dict(each)
        if counted is not None and service.repository.is_ready(each["name"]):
            shown |= {
                "succeeded": counted.requests_succeeded,
                "failed": counted.requests_failed,
                "refused": counted.requests_refused,
                "active": counted.requests_active,
                "waiting": counted.requests_waiting,
                "mean": counted.latency_mean,
                "p50": counted.latency_p50,
                "p99": counted.latency_p99,
                "devices": service.host.get_device_partition_mapping(each["name"]),
            }
        models.append(shown)
    devices = [
        {
            "name": name,
            "kind": device.kind,
            "load": device.load,
            "used_memory": device.used_memory,
            "maximum_memory": device.maximum_memory,
            "functions": list(device.functions),
        }
        for name, device in found.devices.items()
    ]
    return {
        "ready": service.is_ready,
        "models": models,
        "devices": devices,
        "queue": {"size": found.queue_size, "limit": found.max_queue_size, "active": found.active},
    }
