"""No import circles: what a file imports can be read, tried and moved without it. Imports for type checking count."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tests.architecture.source import SOURCES, Source

MODULES = {source.module: source for source in SOURCES}


def imported(source: Source) -> Iterator[str]:
    """The modules of ours that a file imports."""
    for _, name in source.imports():
        module = name if name in MODULES else name.rpartition(".")[0]
        if module in MODULES and module != source.module:
            yield module


def circle(below: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in turn; [] where there are none."""
    try:
        TopologicalSorter(below).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def test_there_is_no_import_circle() -> None:
    assert circle({name: set(imported(source)) for name, source in MODULES.items()}) == []


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()})) == {"a", "b", "c"}
