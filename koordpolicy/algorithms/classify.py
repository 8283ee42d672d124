"""Which QoS class and priority band a pod belongs to, given the catalogue that policy declares.

The names of classes and bands are data here: a policy author may have other ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

NONE = ""
"""The name of no class and of no band."""

_MOST = 1024
"""Answers that are kept."""


@dataclass(frozen=True, slots=True)
class QoSClass:
    """A QoS class: the Kubernetes classes that lead to it without a label, and its default band."""

    name: str
    kubernetes: tuple[str, ...] = ()
    default_band: str = NONE


@dataclass(frozen=True, slots=True)
class PriorityBand:
    """A priority band: its name in policies, its class name on the wire, and its numbers.

    `low` and `high` are inclusive; `default` is the priority of a pod in this band that has none.
    """

    name: str
    class_name: str
    low: int
    high: int
    default: int


@dataclass(frozen=True, slots=True)
class Resolution:
    """What one pod resolved to. Empty names mean none."""

    qos: str
    raw_band: str
    band: str
    priority: int


class Catalogue:
    """All QoS classes and bands of a revision, indexed for resolution. Immutable."""

    __slots__ = (
        "_by_class_name",
        "_by_kubernetes",
        "_in_order",
        "_resolved",
        "bands",
        "classes",
        "fallback_band",
    )

    def __init__(
        self, classes: Iterable[QoSClass], bands: Iterable[PriorityBand], fallback_band: str = NONE
    ) -> None:
        """`fallback_band` is the raw band of a pod whose priority lies outside all bands.

        Where two classes claim one Kubernetes class or two bands one priority, the first given wins.
        """
        self._in_order = tuple(bands)
        all_classes = tuple(classes)
        self.classes: Mapping[str, QoSClass] = MappingProxyType({one.name: one for one in all_classes})
        self.bands: Mapping[str, PriorityBand] = MappingProxyType({one.name: one for one in self._in_order})
        self.fallback_band = fallback_band
        self._resolved: dict[tuple[str | None, str | None, int | None, str], Resolution] = {}
        self._by_class_name: dict[str, str] = {}
        for band in self._in_order:
            self._by_class_name.setdefault(band.class_name, band.name)
        self._by_kubernetes: dict[str, str] = {}
        for one in all_classes:
            for kubernetes in one.kubernetes:
                self._by_kubernetes.setdefault(kubernetes, one.name)

    def labelled_qos(self, label: str | None) -> str:
        """The class a label names; none for an absent or unknown one."""
        return label if label is not None and label in self.classes else NONE

    def effective_qos(self, label: str | None, kubernetes_qos: str) -> str:
        """The class the label names, else the one for the pod's Kubernetes QoS class."""
        return self.labelled_qos(label) or self._by_kubernetes.get(kubernetes_qos, NONE)

    def raw_band(self, class_label: str | None, priority: int | None) -> str:
        """The band by label or priority alone.

        A label that is present decides, even when it names no band; the priority counts only without.
        """
        if class_label is not None:
            return self._by_class_name.get(class_label, NONE)
        if priority is None:
            return NONE
        for band in self._in_order:
            if band.low <= priority <= band.high:
                return band.name
        return self.fallback_band

    def band(self, raw_band: str, qos: str) -> str:
        """The raw band, else the default band of the effective QoS class."""
        if raw_band:
            return raw_band
        found = self.classes.get(qos)
        return found.default_band if found is not None else NONE

    def band_of_class(self, class_name: str) -> str:
        """The band of a class name on the wire, such as one a node metric reports."""
        return self._by_class_name.get(class_name, NONE)

    def class_name(self, band: str) -> str:
        """The class name on the wire of a band; empty for none."""
        found = self.bands.get(band)
        return found.class_name if found is not None else NONE

    def default_priority(self, band: str) -> int:
        """The priority of a pod in a band that has none of its own; 0 without a band."""
        found = self.bands.get(band)
        return found.default if found is not None else 0

    def resolve(
        self, qos_label: str | None, class_label: str | None, priority: int | None, kubernetes_qos: str
    ) -> Resolution:
        """All of it for one pod. Labels are None when absent; priority 0 counts as not set."""
        key = qos_label, class_label, priority, kubernetes_qos
        found = self._resolved.get(key)
        if found is None:
            qos = self.effective_qos(qos_label, kubernetes_qos)
            raw = self.raw_band(class_label, priority)
            band = self.band(raw, qos)
            if len(self._resolved) >= _MOST:
                self._resolved.clear()
            found = Resolution(qos, raw, band, priority or self.default_priority(band))
            self._resolved[key] = found
        return found
