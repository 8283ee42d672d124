"""Coverage as Cobertura XML, which Jenkins, GitLab and Azure show beside changed lines."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from time import time
from xml.etree import ElementTree as ET

from koordpolicy.cli.results.shown import ShownRun
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.testing.branches import Branch, BranchKind

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">\n'
)

_Cases = Mapping[Branch, int]
"""Branches, with how many cases took each."""


def render_cobertura(shown: ShownRun) -> str:
    """A package for each folder, a class for each file, a condition for each part of an expression that has branches.

    A line counts as often as its best branch.
    """
    cases = shown.run.coverage.cases if shown.run.coverage is not None else {}
    folders: dict[str, dict[str, dict[Branch, int]]] = {}
    for branch, count in cases.items():
        path = PurePosixPath(branch.span.file)
        folders.setdefault(str(path.parent), {}).setdefault(str(path), {})[branch] = count
    lines = [covered for files in folders.values() for held in files.values() for covered in _hits(held)]
    top = ET.Element(
        "coverage",
        {
            **_rates(cases, lines),
            "lines-covered": str(sum(lines)),
            "lines-valid": str(len(lines)),
            "branches-covered": str(sum(count > 0 for count in cases.values())),
            "branches-valid": str(len(cases)),
            "version": "koordpolicy",
            "timestamp": str(int(time() * 1000)),
        },
    )
    ET.SubElement(ET.SubElement(top, "sources"), "source").text = "."
    packages = ET.SubElement(top, "packages")
    for folder, files in sorted(folders.items()):
        together = {branch: count for held in files.values() for branch, count in held.items()}
        rates = _rates(together, [covered for held in files.values() for covered in _hits(held)])
        package = ET.SubElement(packages, "package", name=safe(folder), attrib=rates)
        classes = ET.SubElement(package, "classes")
        for file, held in sorted(files.items()):
            classes.append(_file(file, held))
    ET.indent(top)
    return _HEAD + ET.tostring(top, encoding="unicode") + "\n"


def _file(name: str, cases: _Cases) -> ET.Element:
    shown = safe(name)
    element = ET.Element("class", name=shown, filename=shown, attrib=_rates(cases, _hits(cases)))
    ET.SubElement(element, "methods")
    lines = ET.SubElement(element, "lines")
    for number, held in sorted(_by_line(cases).items()):
        lines.append(_line(number, held))
    return element


def _line(number: int, cases: _Cases) -> ET.Element:
    line = ET.Element(
        "line",
        {
            "number": str(number),
            "hits": str(max(cases.values())),
            "branch": "true",
            "condition-coverage": _share(cases.values(), counted=True),
        },
    )
    parts: dict[tuple[BranchKind, int, int], list[int]] = {}
    for branch, count in cases.items():
        place = branch.span.start
        parts.setdefault((branch.kind, place.line, place.column), []).append(count)
    conditions = ET.SubElement(line, "conditions")
    for at, ((kind, _, _), counts) in enumerate(parts.items()):
        ET.SubElement(conditions, "condition", number=str(at), type=str(kind), coverage=_share(counts))
    return line


def _by_line(cases: _Cases) -> dict[int, dict[Branch, int]]:
    lines: dict[int, dict[Branch, int]] = {}
    for branch, count in cases.items():
        lines.setdefault(branch.span.start.line, {})[branch] = count
    return lines


def _hits(cases: _Cases) -> list[bool]:
    """Of each line, whether any case took a branch of it."""
    return [any(held.values()) for held in _by_line(cases).values()]


def _rates(cases: _Cases, lines: list[bool]) -> dict[str, str]:
    return {
        "line-rate": _rate(lines),
        "branch-rate": _rate([count > 0 for count in cases.values()]),
        "complexity": "0",
    }


def _rate(covered: list[bool]) -> str:
    """A share from 0 to 1; nothing to cover counts as all of it."""
    return f"{sum(covered) / len(covered) if covered else 1.0:.4g}"


def _share(counts: Iterable[int], *, counted: bool = False) -> str:
    """`50%`, or `50% (1/2)`."""
    found = [count > 0 for count in counts]
    taken = sum(found)
    percent = f"{100 * taken // len(found)}%"
    return f"{percent} ({taken}/{len(found)})" if counted else percent
