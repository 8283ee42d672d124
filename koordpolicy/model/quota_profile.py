"""ElasticQuotaProfile objects as values: a set of nodes, and the root quota that is made of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.protocol import QUOTA_RESOURCE_KEYS, QUOTA_TREE_ID
from koordpolicy.model.quota import embedded_names
from koordpolicy.model.reading import NO_TEXT, Json, ObjectError, mapping, text, texts


@dataclass(frozen=True, slots=True)
class QuotaProfile:
    """A profile as its object says it.

    `quota` is the name of the root quota, in the namespace of the profile; `tree` the id of its tree, empty for none.
    `ratio` is None where the object gives no number, `resource_keys` is empty where it gives no names. `selector`
    says which nodes belong to the tree; None selects none.
    """

    namespace: str
    name: str
    quota: str
    quota_labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    tree: str = ""
    ratio: float | None = None
    resource_keys: tuple[str, ...] = ()
    selector: LabelSelector | None = None


def read_quota_profile(obj: Json) -> QuotaProfile:
    """A profile from its JSON. Raises ObjectError with the place of what is malformed.

    A ratio that is no number and keys that are no list of names say nothing, as in Koordinator.
    """
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    labels = texts(metadata, "labels", "metadata")
    annotations = texts(metadata, "annotations", "metadata")
    return QuotaProfile(
        namespace=text(metadata, "namespace", "metadata"),
        name=text(metadata, "name", "metadata"),
        quota=text(spec, "quotaName", "spec"),
        quota_labels=texts(spec, "quotaLabels", "spec"),
        labels=labels,
        annotations=annotations,
        tree=labels.get(QUOTA_TREE_ID, ""),
        ratio=_number(text(spec, "resourceRatio", "spec")),
        resource_keys=_keys(annotations),
        selector=None
        if spec.get("nodeSelector") is None
        else read_selector(mapping(spec, "nodeSelector", "spec"), "spec.nodeSelector"),
    )


def _keys(annotations: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(embedded_names(annotations, QUOTA_RESOURCE_KEYS)))
    except ObjectError:
        return ()


def _number(text: str) -> float | None:
    """The number that a text is, as Koordinator reads it; None where it is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None
