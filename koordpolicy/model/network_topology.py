"""ClusterNetworkTopology as values, and what gangs say of how their pods are to stand together in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.reading import (
    Json,
    ObjectError,
    embedded_object,
    integer,
    mapping,
    objects,
    sequence,
    text,
    text_list,
)

USED: Final = "default"
"""The name of the one topology that is looked at."""

CLUSTER_LAYER: Final = "ClusterTopologyLayer"
"""The layer of the root, which has no name."""

NODE_LAYER: Final = "NodeTopologyLayer"
"""The layer of the leaves, which are nodes."""

MOST_LAYERS: Final = 16
"""More layers than any network has: a topology with more cannot be read."""

_MUST: Final = "MustGather"
_MOST_MULTIPLE: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class NetworkLayer:
    """A layer of a network: the layer above it, and the labels of which the first that a node has names its place."""

    name: str
    parent: str = ""
    label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """The layers of a network in any order. `details` is what its status says of places; it takes no part in comparison."""

    name: str
    layers: tuple[NetworkLayer, ...] = ()
    details: Sequence[object] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class GatherRule:
    """What a gang says of a layer: whether all its pods have to be in one place of it, and how many a place takes at once."""

    layer: str
    must: bool = False
    multiple: int = 1


def read_network_topology(obj: Json) -> NetworkTopology:
    """A topology from its JSON. Raises ObjectError with the place of what is malformed."""
    listed = "spec.networkTopologySpec"
    layers: list[NetworkLayer] = []
    for index, one in enumerate(objects(mapping(obj, "spec"), "networkTopologySpec", "spec")):
        if index == MOST_LAYERS:
            raise ObjectError(f"{listed}: more than {MOST_LAYERS} layers")
        at = f"{listed}[{index}]"
        name = text(one, "topologyLayer", at)
        if not name:
            raise ObjectError(f"{at}.topologyLayer: a layer has a name")
        if any(known.name == name for known in layers):
            raise ObjectError(f"{at}.topologyLayer: there is a layer `{name}` already")
        keys = tuple(text_list(one, "labelKey", at))
        layers.append(NetworkLayer(name, text(one, "parentTopologyLayer", at), keys))
    details = sequence(mapping(obj, "status"), "detailStatus", "status")
    return NetworkTopology(text(mapping(obj, "metadata"), "name", "metadata"), tuple(layers), details)


def read_gather_rules(source: str, at: str) -> tuple[GatherRule, ...]:
    """What an annotation says of how pods are to stand together; empty when it is. Raises ObjectError."""
    if not source:
        return ()
    rules = []
    for index, one in enumerate(objects(embedded_object(source, at), "gatherStrategy", at)):
        place = f"{at}: gatherStrategy[{index}]"
        multiple = integer(one, "podCountMultiple", place) or 1
        if not 0 < multiple < _MOST_MULTIPLE:
            raise ObjectError(f"{place}.podCountMultiple: expected a number from 1, found {multiple}")
        rules.append(GatherRule(text(one, "layer", place), text(one, "strategy", place) == _MUST, multiple))
    return tuple(rules)
