"""Invariants: what must hold of decisions gets its types. Whether it holds is for `graph/proof` to say."""

from collections.abc import Mapping

from koordpolicy.diagnostics import Severity
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.expressions import Texts
from koordpolicy.graph.invariants import BEFORE, DECISIONS, RAISED, Invariant
from koordpolicy.graph.lookup import Names
from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.graph.scope import Scope, true_or_false
from koordpolicy.graph.slots import decision_of, nameable_roots
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import refs_of
from koordpolicy.language.cel.types import ERROR, Type
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.kinds.invariants import InvariantSpec

_ORDERED = frozenset(("int", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"))
_MOST_NUMBERS = 6
_DESCRIPTION = "koordpolicy.io/description"


def invariants(state: State) -> None:
    """Fill `invariants`; report KP803 for names of nothing."""
    units = [unit for unit in state.units if isinstance(unit.spec, InvariantSpec)]
    if not units:
        return
    names = Names([unit for unit in state.units if unit.kind.components], state.decisions.keys())
    by_name = {str(key): key for key in state.decisions}
    for unit in units:
        made = _invariant(state, unit, names, by_name)
        if made is not None:
            state.invariants.append(made)


def _invariant(
    state: State, unit: Unit, names: Names, by_name: Mapping[str, DecisionKey]
) -> Invariant | None:
    spec = unit.spec
    assert isinstance(spec, InvariantSpec)
    decisions = _decisions(state, unit, spec, names, by_name)
    roots = {name: ROOTS[name].type for one in decisions.values() for name in _roots(state, one)}
    raised = _raised(state, unit, spec, roots)
    if len(decisions) < len(spec.decisions) or len(raised) < len(spec.raised):
        return None
    types = {name: state.expressions.value(one).type for name, one in decisions.items()}
    if ERROR in types.values():
        return None  # what is wrong with the decision has been said
    vocabulary = state.vocabulary.extended(roots, None, decisions=types, before=types)
    scope = Scope(vocabulary.extended(raised=types) if raised else vocabulary, {}, None)
    texts = Texts(state.cache, state.found, state.probe)
    where = None if spec.where is None else true_or_false(unit, texts, scope, ("spec", "where"))
    require = true_or_false(unit, texts, scope, ("spec", "require"))
    if require is None or (where is None and spec.where is not None):
        return None
    _report_idle(state, unit, where, require)
    spaces_used = {space for space, _ in refs_of(require, *([where] if where is not None else []))}
    return Invariant(
        unit.document.name,
        unit.id,
        unit.layer_name,
        _meaning(unit),
        {name: one.key for name, one in decisions.items()},
        where,
        require,
        raised,
        BEFORE in spaces_used,
        " ".join(spec.require.split()),
        unit.document.positions.value(("spec", "require")),
    )


def _report_idle(state: State, unit: Unit, where: ir.Node | None, require: ir.Node) -> None:
    """KP804 for an invariant that holds, or is asked, whatever is decided."""
    if where is not None and outcome(where) is False:
        key, problem, help = "where", "is asked of no input", "loosen `where`"
    elif outcome(require) is True and not any(
        space in (DECISIONS, RAISED, BEFORE) for space, _ in refs_of(require)
    ):
        key, problem, help = (
            "require",
            "holds whatever is decided",
            "compare `decisions.<name>` with something",
        )
    else:
        return
    state.found.add(
        "KP804",
        unit.document.positions.value(("spec", key)),
        f"the invariant `{unit.document.name}` {problem}",
        help=help,
        severity=Severity.WARNING,
    )


def _meaning(unit: Unit) -> str:
    metadata = unit.document.data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return str(annotations.get(_DESCRIPTION, "")) if isinstance(annotations, Mapping) else ""


def _decisions(
    state: State, unit: Unit, spec: InvariantSpec, names: Names, by_name: Mapping[str, DecisionKey]
) -> dict[str, Decision]:
    found: dict[str, Decision] = {}
    for name, written in spec.decisions.items():
        key = by_name.get(written)
        declared = names.declared(written) if key is None else None
        if key is not None:
            found[name] = state.decisions[key]
        elif declared is not None:
            found[name] = decision_of(declared.key, declared.kind, declared.slot)
        else:
            close = names.meant(written)
            state.found.add(
                "KP803",
                unit.document.positions.value(("spec", "decisions", name)),
                f"there is no decision `{written}`",
                help=f"did you mean `{close}`?" if close else "`koordpolicy graph` shows all decisions",
            )
    return found


def _roots(state: State, decision: Decision) -> tuple[str, ...]:
    """The roots that may be named beside a decision: those of its kind."""
    kind = next((unit.kind for unit in state.units if unit.kind.name == decision.key.kind), None)
    return decision.roots if kind is None else tuple(name for name in ROOTS if name in nameable_roots(kind))


def _raised(
    state: State, unit: Unit, spec: InvariantSpec, roots: Mapping[str, Type]
) -> tuple[tuple[str, str], ...]:
    """The facts of the second record; KP803 for what is no number of a root that is there."""
    found: list[tuple[str, str]] = []
    for at, written in enumerate(spec.raised):
        root, _, path = written.partition(".")
        record = roots[root].record if root in roots else None
        fact = FACTS.resolve(record, path) if record else None
        if isinstance(fact, Fact) and fact.type.name in _ORDERED:
            found.append((root, path))
            continue
        paths = [f"{root}.{one.path}" for one in FACTS.leaves(record or "") if one.type.name in _ORDERED]
        close = nearest(written, paths)
        state.found.add(
            "KP803",
            unit.document.positions.value(("spec", "raised", at)),
            f"`{written}` is no number that these decisions may read",
            help=f"did you mean `{close}`?" if close else _numbers(roots),
        )
    return tuple(found)


def _numbers(roots: Mapping[str, Type]) -> str | None:
    """Numbers that may be raised, those of all roots, the first of each group."""
    first: dict[tuple[str, str], str] = {}
    for root, kind in roots.items():
        for one in FACTS.leaves(kind.record or ""):
            if one.type.name in _ORDERED:
                group = one.path.partition(".")[0] if "." in one.path else one.path
                first.setdefault((root, group), f"`{root}.{one.path}`")
    listed = ", ".join(list(first.values())[:_MOST_NUMBERS])
    return f"numbers are such as {listed}" if listed else None
