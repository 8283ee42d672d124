"""Fields of objects that are facts as they stand, as CEL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.facts.pod_spec import (
    CONTAINER_FIELDS,
    PORT_FIELDS,
    TOLERATION_FIELDS,
    VOLUME_FIELDS,
    VOLUME_SOURCES,
    SpecField,
)

ELEMENTS: Final[Mapping[str, Mapping[str, SpecField]]] = MappingProxyType(
    {
        "container": CONTAINER_FIELDS,
        "containerPort": PORT_FIELDS,
        "toleration": TOLERATION_FIELDS,
        "volume": VOLUME_FIELDS,
    }
)
"""Records that stand in lists of a pod, with their fields."""
POD_LISTS: Final = frozenset(("tolerations", "volumes", "ephemeralContainers"))
"""Lists of records that a pod has, as they stand in its spec."""


def field_text(holder: str, path: str, field: SpecField) -> str:
    """A field of what the text `holder` stands for, with what stands for it where it is unset."""
    unset = _literal(field.unset)
    text = f"{holder}.{path}" if unset is None else f"{_way(holder, path)}.orValue({unset})"
    return f"int({text})" if field.kind is int else text


def field_there(holder: str, path: str) -> str:
    """Whether a field is set."""
    return f"{_way(holder, path)}.hasValue()"


def volume_source(volume: str) -> str:
    """The fact `source` of a volume."""
    return f"({''.join(f'has({volume}.{name}) ? {quote_string(name)} : ' for name in VOLUME_SOURCES)}'')"


def _way(holder: str, path: str) -> str:
    return f"{holder}.?{path.replace('.', '.?')}"


def _literal(unset: object) -> str | None:
    match unset:
        case None:
            return None
        case bool():
            return "true" if unset else "false"
        case str():
            return quote_string(unset)
        case tuple():
            return "[]"
        case int():
            return str(unset)
    return "{}"
