"""Which keys of a vector's input its runner reads: one that is dropped silently would make the answer luck."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_LABELS: Final = {
    "labels",
    "annotations",
    "matchLabels",
    "namespace_labels",
    "labelKeysMapping",
    "annotationKeysMapping",
}
"""Mappings whose keys are a user's own: who asks for one has read it."""


class ReadInput(dict[str, Any]):
    """A mapping of an input, all mappings within it likewise, that notes in `read` the paths of the keys asked for.

    A path has no places in lists: `node.zones[].cpu`. Who goes through all keys has asked for each.
    """

    def __init__(self, given: Mapping[str, Any], read: set[str], path: str = "") -> None:
        super().__init__({key: _within(value, f"{path}{key}", read) for key, value in given.items()})
        self._path = path
        self._read = read

    def __getitem__(self, key: str) -> Any:
        self._read.add(f"{self._path}{key}")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(f"{self._path}{key}")
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._read.add(f"{self._path}{key}")
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def keys(self) -> Any:
        self._all()
        return super().keys()

    def values(self) -> Any:
        self._all()
        return super().values()

    def items(self) -> Any:
        self._all()
        return super().items()

    def __eq__(self, other: object) -> bool:
        self._all()
        return super().__eq__(other)

    __hash__ = None  # as of every dict

    def _all(self) -> None:
        self._read.update(f"{self._path}{key}" for key in super().__iter__())


def _within(value: Any, path: str, read: set[str]) -> Any:
    if isinstance(value, dict):
        return ReadInput(value, read, f"{path}.")
    if isinstance(value, list):
        return [_within(one, f"{path}[]", read) for one in value]
    return value


def paths(given: Any, path: str = "") -> Iterator[str]:
    """The paths of all keys of an input."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield f"{path}{key}"
            if key not in _LABELS:
                yield from paths(value, f"{path}{key}.")
    elif isinstance(given, list):
        prefix = path.removesuffix(".")
        for one in given:
            yield from paths(one, f"{prefix}[]" + ("." if isinstance(one, dict) else ""))


def parent(path: str) -> str:
    """The path of the key that a key stands in; empty for one of the input itself."""
    return path.rpartition(".")[0].rstrip("[]")
