"""Coverage as an LCOV tracefile, which most services and editors read."""

from collections.abc import Iterator, Mapping

from koordpolicy.cli.results.shown import ShownRun
from koordpolicy.graph.testing.branches import Branch


def render_lcov(shown: ShownRun) -> str:
    """The branches of each file, by line, with how many cases took them; a line counts as often as its best branch."""
    files: dict[str, dict[Branch, int]] = {}
    for branch, cases in (shown.run.coverage.cases if shown.run.coverage is not None else {}).items():
        files.setdefault(branch.span.file, {})[branch] = cases
    return "".join(f"{line}\n" for file in sorted(files) for line in _lines(file, files[file]))


def _lines(file: str, branches: Mapping[Branch, int]) -> Iterator[str]:
    yield f"SF:{file}"
    lines: dict[int, int] = {}
    evaluated = {(one.document, one.path) for one, cases in branches.items() if cases}
    for at, (one, cases) in enumerate(branches.items()):
        line = one.span.start.line
        lines[line] = max(lines.get(line, 0), cases)
        taken = str(cases) if (one.document, one.path) in evaluated else "-"
        yield f"BRDA:{line},{one.span.start.column},{at},{taken}"
    yield f"BRF:{len(branches)}"
    yield f"BRH:{sum(cases > 0 for cases in branches.values())}"
    for line, cases in sorted(lines.items()):
        yield f"DA:{line},{cases}"
    yield f"LF:{len(lines)}"
    yield f"LH:{sum(cases > 0 for cases in lines.values())}"
    yield "end_of_record"
