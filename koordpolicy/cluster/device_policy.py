"""What policy says of devices to the scheduler: in which words pods ask for each sort of them, and which ones they get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from koordpolicy.algorithms.device_fragmentation import UsualPods, usual_pods
from koordpolicy.algorithms.device_need import DeviceNeed, DeviceWords, device_need
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.graph.sortable import SortKey, sortable
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.devices import Device
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import card_facts
from koordpolicy.model.pod_devices import DeviceShare
from koordpolicy.model.reading import Amounts

KIND: Final = "DeviceSharing"

_MOST: Final = 64
"""Cards of a partition that is not listed one by one: no machine has more."""

_LOT: Final = ("device", "lot")
_BRIEF: Final = frozenset({("device", "free"), ("device", "used"), ("device", "gradient")})
_LOTS: Final = 1_000_000

_LAST: Final[SortKey] = ((1,),)
"""A device of which policy says nothing comes after all others."""


@dataclass(frozen=True, slots=True)
class DeviceSort:
    """One sort of devices. `by_topology` says that the smallest scope that has enough of them is taken from.

    `sizes` are how many cards partitions have, by model, where the Device object has no table of them, `left` what a partition
    of each size counts that is left (none: cards are not dealt out in partitions). Against `usual` pods fragmentation is
    measured, `scale` is how much of a device makes one step; `imbalance` how much it counts as if CPU or
    devices alone are left.
    """

    type: str
    words: DeviceWords
    by_topology: bool
    order: PreparedDecision
    sizes: Mapping[str, Sequence[int]]
    left: Mapping[int, int]
    best_first: bool
    usual: UsualPods | None = None
    scale: int = 100
    imbalance: int = 0
    isolation: str = ""
    """The label that a pod and its node have alike where they share a device."""
    unshared: frozenset[str] = frozenset()
    """The models that are given as a whole only."""
    score: PreparedDecision | None = None
    """What nodes are worth by their devices; None where policy does not say."""
    zoned: bool = True
    """Whether devices lie in the zones that are found for a pod's CPUs and memory, and have a say in which these are."""
    zone_score: int = 0
    """What zones score where a pod has the devices that it would get anyway."""
    annotations: Mapping[str, PreparedDecision] = field(default_factory=dict)
    """What a pod gets beside the annotation that says what it has."""
    templated: frozenset[str] = frozenset()
    """The resources of which a part of a device is given by a template alone."""
    templates: Mapping[str, Mapping[str, Amounts]] = field(default_factory=dict)
    """What each template has, by vendor and model, and by name."""
    keys: dict[tuple[int, bool, int], SortKey] = field(default_factory=dict, repr=False, compare=False)
    """The places of devices of which the order reads nothing but these: how much is free, whether it is used, and the gradient."""

    def key(self, card: Card, device: Device, pod: Record, gradient: int) -> SortKey:
        """The place of a device among others; `gradient` is what it would mean for usual pods, 0 to 100."""
        percent = card.percent(self.words.measured)
        if self.order.facts <= _BRIEF:
            state = percent, card.used, gradient
            known = self.keys.get(state)
            if known is None:
                facts = card_facts(device, percent, used=card.used, gradient=gradient)
                known = self.keys[state] = self._sorted({"device": facts})
            return known
        lot = _lot(pod, device) if _LOT in self.order.facts else 0
        facts = card_facts(device, percent, used=card.used, gradient=gradient, lot=lot)
        return self._sorted({"device": facts, "pod": pod})

    def _sorted(self, records: Mapping[str, Any]) -> SortKey:
        try:
            found = self.order.value(records)
        except CelError:
            return _LAST
        return ((0,), *map(sortable, found or ()))

    def by_template(self, need: DeviceNeed) -> bool:
        """Whether what is asked for is given by a template alone."""
        return need.shared and not self.templated.isdisjoint(need.each)

    def said(self, pod: Record, node: str, shares: Sequence[DeviceShare]) -> dict[str, str]:
        """The annotations that a pod gets with its devices. Raises CelError."""
        records = {}
        if any(one.program is not None for one in self.annotations.values()):
            records = {"pod": pod, "allocated": allocation_facts(node, shares, self.words.measured)}
        found = {key: one.value(records) for key, one in self.annotations.items()}
        return {key: text for key, text in found.items() if text}


def allocation_facts(node: str, shares: Sequence[DeviceShare], measured: str) -> Record:
    """What a pod is given of the devices of one type, as facts."""
    return {
        "node": node,
        "indexes": [one.minor for one in shares],
        "ids": [one.id for one in shares],
        "percents": [one.resources.get(measured, 0) for one in shares],
        "template": shares[0].template if shares else "",
    }


def _lot(pod: Record, device: Device) -> int:
    """A number as if drawn: whoever is asked again, or after a restart, says the same."""
    drawn = f"{pod.get('namespace')}/{pod.get('name')}/{device.type}/{device.id}/{device.minor}"
    return int.from_bytes(blake2b(drawn.encode(errors="surrogatepass"), digest_size=8).digest()) % _LOTS


class DevicePolicy:
    """The DeviceSharing documents of one revision, of the sorts that the scheduler deals out."""

    __slots__ = ("_latest", "_names", "isolation", "measures", "names", "sorts")

    def __init__(self, graph: RuleGraph) -> None:
        keys = mapping_keys(graph, KIND)
        found = [_sort(graph, name, keys) for name in graph.subjects(KIND)]
        self.sorts: Final = {one.type: one for one in found if one is not None}
        self._names: Final = [(type, one.words.names) for type, one in self.sorts.items()]
        self.names: Final = frozenset().union(*(one.words.names for one in self.sorts.values()))
        """All resources by which devices are asked for."""
        self.isolation: Final = sorted({one.isolation for one in self.sorts.values() if one.isolation})
        """The labels by which pods say how they are kept apart from others on a device."""
        self.measures: Final = any(one.usual for one in self.sorts.values())
        """Whether fragmentation is measured anywhere."""
        self._latest: tuple[Amounts, Mapping[str, DeviceNeed]] | None = None

    def needs(self, request: Amounts) -> Mapping[str, DeviceNeed]:
        """What a pod asks for of each type. Raises DeviceRequestError."""
        if self.names.isdisjoint(request):
            return {}
        if self._latest is not None and self._latest[0] is request:
            return self._latest[1]  # asked several times of every pod
        needs = {}
        for type, names in self._names:
            if not names.isdisjoint(request):
                need = device_need(request, self.sorts[type].words)
                if need is not None:
                    needs[type] = need
        self._latest = request, needs
        return needs


def _sort(graph: RuleGraph, name: str, keys: Mapping[tuple[str, str], tuple[str, ...]]) -> DeviceSort | None:
    about = graph.about(KIND, name)

    def value(said: str) -> Any:
        return about.value(f"scheduling.{said}")

    def table(said: str) -> dict[str, Amounts]:
        at = f"scheduling.{said}"
        return {key: about.value(f"{at}[{key}]") or {} for key in keys.get((name, at), ())}

    combinations = frozenset(frozenset(one) for one in value("combinations") or ())
    if not combinations:
        return None
    words = DeviceWords(
        combinations,
        table("converts"),
        frozenset(value("percents") or ()),
        value("counter") or "",
        value("measured") or "",
        frozenset(value("sized") or ()),
        table("atMost"),
    )
    left = {int(size): weight for size, weight in (value("leftover") or {}).items() if size.isdecimal()}
    order = prepared(graph, f"{KIND}/{name}.scheduling.order")
    score = prepared(graph, f"{KIND}/{name}.scheduling.score")
    return DeviceSort(
        name,
        words,
        value("placement") == "Topology",
        order,
        {
            model: [size for size in sizes if 0 < size <= _MOST]
            for model, sizes in (value("partitionSizes") or {}).items()
        },
        left,
        value("bestPartitionsFirst") is True,
        _usual(value("usualPods") or {}),
        max(1, value("fragmentationScale") or 1),
        value("imbalance") or 0,
        value("isolationLabel") or "",
        frozenset(value("unsharedModels") or ()),
        score if score.program is not None or score.constant is not None else None,
        value("zoned") is not False,
        value("zoneScore") or 0,
        {
            key: prepared(graph, f"{KIND}/{name}.scheduling.annotations[{key}]")
            for key in keys.get((name, "scheduling.annotations"), ())
        },
        frozenset(value("templated") or ()),
        {
            model: {one: dict(amounts) for one, amounts in named.items()}
            for model, named in (value("templates") or {}).items()
        },
    )


def _usual(listed: Mapping[str, int]) -> UsualPods | None:
    try:
        return usual_pods(listed)
    except ValueError:
        return None  # KP416, which keeps a revision from being taken
