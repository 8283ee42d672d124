"""The keys by which evaluations are remembered; README.md beside this says what each of them stands for."""

import hashlib
from collections.abc import Hashable
from typing import Any, TypeAlias

from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.profile import SPEC
from koordpolicy.scheduler.step import Step

Fingerprint: TypeAlias = tuple[Any, ...]

CacheKeys: TypeAlias = dict[str, Hashable]
"""The cache keys of plugins by where they stand: `filter:NAME`, `score:NAME`."""


def fingerprint_of(cycle: Cycle) -> Fingerprint:
    """All that the answers about a node can depend on, beside the node and what plugins see beyond nodes.

    Raises ObjectError for a spec that cannot be read.
    """
    profile, records = cycle.profile, cycle.records
    parts = _of_pod(cycle)
    if profile.reads_cluster:
        parts.append(records["cluster"])
    if profile.reads_now:
        parts.append(records["now"])
    return tuple(parts)


def likeness(cycle: Cycle, *, on_others: bool = False) -> bytes:
    """The same for pods of which a profile says the same, whenever it is asked; with `on_others`, whoever comes and goes.

    Raises ObjectError for a spec that cannot be read, CelError and ParameterError for parameters that cannot be had.
    """
    view, parts = cycle.view, _of_pod(cycle)
    if on_others or any(place.startswith("filter:") for place in cache_keys_of(cycle)):
        controller = view.pod.controller
        parts += [view.pod.namespace, sorted(view.pod.labels.items())]
        parts += ["" if controller is None else controller.uid, view.neighbours, view.ports, view.volumes]
    return hashlib.blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16).digest()


def _of_pod(cycle: Cycle) -> list[Any]:
    """What stays the same while the pod does; first what tells pods apart soonest."""
    profile, view, records = cycle.profile, cycle.view, cycle.records
    parts: list[Any] = list(map(records["pod"].get, profile.fingerprint_facts))
    if SPEC in profile.pod_facts:
        parts.append(view.placement)
    parts += [view.pod.pod_requests, records["namespaceObject"]]
    return parts


def cache_keys_of(cycle: Cycle) -> CacheKeys:
    """The cache keys of the plugins that look beyond nodes and have something to say.

    Raises CelError and ParameterError for parameters that cannot be had, ObjectError for a spec that cannot be read.
    """
    found: CacheKeys = {}
    view, state = cycle.view, cycle.state
    if state is not None:
        said = _Said(cycle)  # one for all: most do not ask, and every pod has its keys made
        for name, step, cache_key in cycle.profile.beyond_nodes(view, state):
            said.step = step
            made = cache_key(view, state, said)
            if made is not None:
                found[name] = made
    return found


class _Said:
    """The parameters of the step whose key is being made."""

    __slots__ = ("_cycle", "step")
    step: Step

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle

    def __call__(self) -> Parameters:
        return self.step.values(self._cycle.records)


def stale(known: CacheKeys, fresh: CacheKeys, name: str) -> bool:
    """Whether what is known of a plugin's answers does not hold any more, though no node has changed.

    One by one: a dict finds a cache key equal to itself, though it says that it equals nothing.
    """
    return bool(known.get(name) != fresh.get(name))


def hold(known: CacheKeys, fresh: CacheKeys) -> bool:
    """Whether all that is known still holds of nodes that have not changed."""
    return known.keys() == fresh.keys() and not any(stale(known, fresh, name) for name in fresh)
