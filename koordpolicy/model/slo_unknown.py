"""Keys of a document of `slo-controller-config` that nobody knows: Koordinator passes over them without a word."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.model.reading import parse_json
from koordpolicy.model.slo_config import LAYOUTS, Entries, FieldForm, Fields, Items, Plain, Shape

_ANYTHING: Final = Plain(FieldForm.ANYTHING)
_ENTRY: Final = {"name": _ANYTHING, "nodeSelector": _ANYTHING}
"""What an entry says beside its strategy."""


def unknown_keys(key: str, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The places of keys that are no fields, each with the fields that may stand there, of a document that can be read."""
    raw = parse_json(text)
    layout = LAYOUTS[key]
    cluster: Mapping[str, Shape] = (
        {layout.cluster: layout.strategy} if layout.cluster else layout.strategy.fields
    )
    entries = Items(Fields({**layout.strategy.fields, **_ENTRY}))
    yield from _below(Fields({**cluster, layout.entries: entries}), raw, key)


def _below(shape: Shape, raw: Any, at: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    match shape:
        case Fields(fields) if isinstance(raw, Mapping):
            for name, value in raw.items():
                known = _known(shape, name)
                if known is None:
                    yield f"{at}.{name}", tuple(fields)
                else:
                    yield from _below(fields[known], value, f"{at}.{known}")
        case Items(element) if isinstance(raw, list):
            for number, one in enumerate(raw):
                yield from _below(element, one, f"{at}[{number}]")
        case Entries(value) if isinstance(raw, Mapping):
            for name, one in raw.items():
                yield from _below(value, one, f"{at}.{name}")


def _known(shape: Fields, key: str) -> str | None:
    """The field that a key means; capitals make no difference, as in Go."""
    if key in shape.fields:
        return key
    return next((name for name in shape.fields if name.lower() == key.lower()), None)
