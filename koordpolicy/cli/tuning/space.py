"""What may change: the marks of the policies that are named, and their texts with other values in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.cli.bundle import OWN, compiled, graph_of_files
from koordpolicy.cli.bundles import meant
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.evaluation import compiler
from koordpolicy.diagnostics import Diagnostics, Fix
from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.graph.tunables import TUNABLE, Tunable, tunables_of
from koordpolicy.language.documents import Lines
from koordpolicy.language.documents.edits import applied
from koordpolicy.source import read_tree

Steps = Mapping[str, int]
"""The step at which each mark stands, by its name."""

_HOW: Final = "mark a number, as `koordpolicy explain KP420` shows"


@dataclass(frozen=True, slots=True)
class Space:
    """Policies by their texts, and the values in them that may change."""

    files: Mapping[str, str]
    tunables: tuple[Tunable, ...]
    compilation: Compilation
    graph: RuleGraph

    @property
    def size(self) -> int:
        """How many choices there are."""
        count = 1
        for one in self.tunables:
            count *= one.steps + 1
        return count

    @property
    def present(self) -> dict[str, int] | None:
        """The choice that stands in the files; None where one of its values is at no step."""
        steps = {one.name: one.present_step for one in self.tunables}
        return {k: v for k, v in steps.items() if v is not None} if None not in steps.values() else None

    def may_hold(self, steps: Mapping[str, object]) -> bool:
        """Whether these are marks and steps of theirs; not necessarily of all marks."""
        most = {one.name: one.steps for one in self.tunables}
        return all(type(step) is int and 0 <= step <= most.get(name, -1) for name, step in steps.items())

    def texts(self, steps: Steps) -> dict[str, str]:
        """All files with the values of a choice in them; nothing else in them differs."""
        fixes: dict[str, list[Fix]] = {}
        for one in self.tunables:
            if steps[one.name] != one.present_step:
                span, text = one.edit(steps[one.name])
                fixes.setdefault(span.file, []).append(Fix(one.name, span, text))
        return {
            file: applied(Lines(file, text), fixes[file])[0] if file in fixes else text
            for file, text in self.files.items()
        }


def space_of(paths: Sequence[str]) -> Space:
    """The space of policies on disk. Raises `CannotRunError` for policies without marks, or that are not right."""
    compilation, graph = compiled(paths, compiler())
    own = [one.document for one in compilation.units if one.layer_name == OWN]
    tunables = tuple(mark for document in own for mark in tunables_of(document, Diagnostics()))
    if not tunables:
        raise CannotRunError(f"no document has the annotation `{TUNABLE}`, so nothing may change; {_HOW}")
    space = Space(read_tree(meant(paths)).files, tunables, compilation, graph)
    _demand_ends(space)
    return space


def _demand_ends(space: Space) -> None:
    """Raise CannotRunError where the least or greatest value of a mark is refused, before anything takes time."""
    for end in (0, None):
        steps = {one.name: one.steps if end is None else end for one in space.tunables}
        try:
            graph_of_files(space.texts(steps), compiler())
        except CannotRunError as error:
            which = "greatest" if end is None else "least"
            raise CannotRunError(f"with the {which} values of all marks {error}") from None
