"""Whether a component can tell two revisions apart: who cannot has nothing to do anew.

Most commits concern one component, and the others would otherwise throw away what they have made of the whole cluster
only to make the very same again.
"""

from collections.abc import Mapping

from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import text_of
from koordpolicy.language.cel.ir_walk import number
from koordpolicy.language.facts import Component


def differs_for(component: Component, old: RuleGraph, new: RuleGraph) -> bool:
    """Whether anything that a component can ask may have another answer in the new graph, exceptions in force included.

    Compared is what answers are made of: the decisions of the component (parameters and the fields of classes and
    bands are decisions), what their expressions refer to, the documents of its kinds with what they apply to, the
    classes and bands, the budget. False is certain. True may be said in vain: a rule, match or document counts as
    unchanged only where it is the same object, as it is between two revisions of one compiler whose file did not
    change. It takes the time of a look at each decision, and no expression is resolved.
    """
    return old is not new and (
        old.budget != new.budget
        or old.is_watched
        or new.is_watched
        or _documents(component, old) != _documents(component, new)
        or _decisions(component, old) != _decisions(component, new)
        or _constants_differ(old.constants, new.constants)
        or text_of(dict(old.classes.qos)) != text_of(dict(new.classes.qos))
        or text_of(dict(old.classes.bands)) != text_of(dict(new.classes.bands))
    )


def _documents(component: Component, graph: RuleGraph) -> list[tuple[Unit, int]]:
    """The documents of the kinds that it asks, which equal only themselves, each with the identity of its match."""
    matches = graph.matches
    return [(unit, id(matches.get(unit))) for unit in graph.units if component in unit.kind.components]


def _decisions(component: Component, graph: RuleGraph) -> dict[object, object]:
    """The decisions that it asks, those rules of exceptions in force among theirs. A rule equals only itself."""
    return {key: one for key, one in graph.decisions.items() if component in one.components}


Constants = Mapping[tuple[str, str], ir.Node]


def _constants_differ(old: Constants, new: Constants) -> bool:
    """Whether any is another expression. By value numbers, since expressions may share their parts many times over."""
    if old.keys() != new.keys():
        return True
    numbering = number([*old.values(), *new.values()])
    return any(numbering.of(node) != numbering.of(new[name]) for name, node in old.items())
