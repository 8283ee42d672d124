"""Elastic quotas as values: specs, labels, and the resource lists in their annotations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.protocol import (
    QUOTA_ADMISSION,
    QUOTA_CHILD_REQUEST,
    QUOTA_FORCE_UPDATE,
    QUOTA_GUARANTEED,
    QUOTA_IGNORES_DEFAULT_TREE,
    QUOTA_IS_PARENT,
    QUOTA_IS_ROOT,
    QUOTA_LENDS,
    QUOTA_NAMESPACES,
    QUOTA_PARENT,
    QUOTA_SHARED_WEIGHT,
    QUOTA_STRICT_KEYS,
    QUOTA_TOTAL,
    QUOTA_TREE_ID,
    ROOT_QUOTA,
)
from koordpolicy.model.quantity import QuantityError, amount, amount_text
from koordpolicy.model.reading import (
    NO_TEXT,
    NOTHING,
    Amounts,
    Json,
    ObjectError,
    embedded,
    embedded_object,
    mapping,
    text,
    texts,
)

_TRUE: Final = "true"
_FALSE: Final = "false"


@dataclass(frozen=True, slots=True)
class Quota:
    """An elastic quota. Amounts as everywhere (cpu in millicores), those of a spec below 0 too, as written.

    `parent` is the name of the quota above it, the root's where the object names none. `shared_weight`, `total` and `admission`
    are None where the object does not say them. `raw` is the object as read; it takes no part in comparison.
    """

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    parent: str = ROOT_QUOTA
    tree: str = ""
    is_parent: bool = False
    is_root: bool = False
    lends: bool = True
    ignores_default_tree: bool = False
    forced: bool = False
    namespaces: tuple[str, ...] = ()
    strict_keys: tuple[str, ...] = ()
    max: Amounts = field(default_factory=lambda: NOTHING)
    min: Amounts = field(default_factory=lambda: NOTHING)
    shared_weight: Amounts | None = None
    total: Amounts | None = None
    guaranteed: Amounts = field(default_factory=lambda: NOTHING)
    used: Amounts = field(default_factory=lambda: NOTHING)
    child_request: Amounts = field(default_factory=lambda: NOTHING)
    admission: Amounts | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


def read_quota(obj: Json) -> Quota:
    """A quota from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata = mapping(obj, "metadata")
    labels = texts(metadata, "labels", "metadata")
    annotations = texts(metadata, "annotations", "metadata")
    spec, status = mapping(obj, "spec"), mapping(obj, "status")
    return Quota(
        name=text(metadata, "name", "metadata"),
        namespace=text(metadata, "namespace", "metadata"),
        labels=labels,
        annotations=annotations,
        parent=labels.get(QUOTA_PARENT) or ROOT_QUOTA,
        tree=labels.get(QUOTA_TREE_ID, ""),
        is_parent=labels.get(QUOTA_IS_PARENT) == _TRUE,
        is_root=labels.get(QUOTA_IS_ROOT) == _TRUE,
        lends=labels.get(QUOTA_LENDS) != _FALSE,
        ignores_default_tree=labels.get(QUOTA_IGNORES_DEFAULT_TREE) == _TRUE,
        forced=labels.get(QUOTA_FORCE_UPDATE) == _TRUE,
        namespaces=embedded_names(annotations, QUOTA_NAMESPACES),
        strict_keys=embedded_names(annotations, QUOTA_STRICT_KEYS),
        max=signed_amounts(mapping(spec, "max", "spec"), "spec.max"),
        min=signed_amounts(mapping(spec, "min", "spec"), "spec.min"),
        shared_weight=embedded_amounts(annotations, QUOTA_SHARED_WEIGHT),
        total=embedded_amounts(annotations, QUOTA_TOTAL),
        guaranteed=embedded_amounts(annotations, QUOTA_GUARANTEED) or NOTHING,
        used=signed_amounts(mapping(status, "used", "status"), "status.used"),
        child_request=embedded_amounts(annotations, QUOTA_CHILD_REQUEST) or NOTHING,
        admission=embedded_amounts(annotations, QUOTA_ADMISSION),
        raw=obj,
    )


def signed_amounts(resources: Json, at: str) -> dict[str, int]:
    """A resource list as integer amounts, below 0 too, under the names that it has. Raises ObjectError."""
    read = {}
    for name, value in resources.items():
        try:
            read[name] = amount(name, value)
        except QuantityError as error:
            raise ObjectError(f"{at}.{name}: {error}") from error
    return read


def embedded_amounts(annotations: Mapping[str, str], key: str) -> dict[str, int] | None:
    """The resource list written in an annotation; None when it is absent or empty. Raises ObjectError."""
    source = annotations.get(key)
    return signed_amounts(embedded_object(source, key), key) if source else None


def embedded_names(annotations: Mapping[str, str], key: str) -> tuple[str, ...]:
    """The list of names written in an annotation; empty when it is absent. Raises ObjectError."""
    source = annotations.get(key)
    found = embedded(source, key) if source else None
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ObjectError(f"{key}: expected a JSON list of texts")
    return tuple(found)


def amounts_text(amounts: Amounts, written: Json = NO_TEXT) -> str:
    """A resource list as the JSON of an annotation. What `written` says of an equal amount is written so again."""
    texts: dict[str, object] = {}
    for name, number in sorted(amounts.items()):
        known = written.get(name)
        texts[name] = known if known is not None and _same(name, known, number) else amount_text(name, number)
    return json.dumps(texts, separators=(",", ":"))


def _same(name: str, written: object, number: int) -> bool:
    try:
        return amount(name, written) == number
    except QuantityError:
        return False
