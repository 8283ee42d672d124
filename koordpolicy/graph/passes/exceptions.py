"""Exceptions: what a PolicyException overrides becomes drafts of rules for the decisions it names."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.exceptions import unit_terms
from koordpolicy.graph.lookup import Declared, Names
from koordpolicy.graph.passes.parameters import PREFIX
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import Draft, State, Unit
from koordpolicy.graph.terms import BadTermsError, Terms
from koordpolicy.language.kinds import Expression, LiteralProblem, PolicySpec
from koordpolicy.language.kinds.exceptions import Override, PolicyExceptionSpec
from koordpolicy.language.kinds.literals import form_problem
from koordpolicy.language.kinds.slots import Written
from koordpolicy.language.kinds.walk import PARAMETER


def exceptions(state: State) -> None:
    """Add to `drafts`; report KP703 to KP705. Later passes treat these drafts as any other."""
    units = [unit for unit in state.units if isinstance(unit.spec, PolicyExceptionSpec)]
    if not units:
        return
    ordinary = [unit for unit in state.units if unit.kind.components]
    targets = _Targets(ordinary, {draft.key: None for draft in state.drafts})
    for unit in units:
        assert isinstance(unit.spec, PolicyExceptionSpec)
        terms = _terms(unit, unit.spec, state.found)
        if terms is not None and _narrow(unit, unit.spec, state.found):
            state.drafts += _drafts(unit, unit.spec, terms, targets, state.found)


def _terms(unit: Unit, spec: PolicyExceptionSpec, found: Diagnostics) -> Terms | None:
    try:
        return unit_terms(unit, spec)
    except BadTermsError as bad:
        found.add(
            "KP705",
            unit.document.positions.value(("spec", bad.key)),
            str(bad),
            help="write the day or time up to which it is needed",
        )
        return None


def _narrow(unit: Unit, spec: PolicyExceptionSpec, found: Diagnostics) -> bool:
    """Whether the match says anything; that its condition is more than `true` is seen once it is understood."""
    match = spec.match
    selectors = (match.nodes, match.namespaces, match.pods)
    says = any(one is not None and (one.match_labels or one.match_expressions) for one in selectors)
    if says or match.condition is not None:
        return True
    report_broad(unit, found)
    return False


def report_broad(unit: Unit, found: Diagnostics) -> None:
    """KP703 at the match."""
    found.add(
        "KP703",
        unit.document.positions.key(("spec", "match")),
        f"the exception `{unit.document.name}` applies to everything",
        help="name the nodes, namespaces or pods that need it; what holds for everything is a policy",
    )


def _drafts(
    unit: Unit, spec: PolicyExceptionSpec, terms: Terms, targets: "_Targets", found: Diagnostics
) -> Iterator[Draft]:
    for name, override in spec.overrides.items():
        path = ("spec", "overrides", name)
        declared = targets.declared(name)
        if declared is None:
            help = targets.advice(name)
            found.add("KP704", unit.document.positions.key(path), f"there is no decision `{name}`", help=help)
            continue
        if not declared.kind.has_rules:
            found.add(
                "KP704",
                unit.document.positions.key(path),
                f"`{declared.key}` is said once for the whole cluster",
                help=f"change the `{declared.kind.name}` document itself",
            )
            continue
        raw = _raw(override, declared)
        problem = _problem(raw, declared)
        if problem is None:
            yield Draft(declared.key, unit, declared.slot, path, raw, (), declared.unit, terms)
        else:
            place = unit.document.positions.value((*path, *problem.path))
            found.add("KP107", place, problem.message, help=problem.help)


def _raw(override: Override, declared: Declared) -> Written | tuple[Written, ...]:
    """A list is one value, but for slots that are lists of values."""
    value = override.value
    return tuple(value) if declared.slot.many and isinstance(value, list) else value


def _problem(raw: Written | tuple[Written, ...], declared: Declared) -> LiteralProblem | None:
    """Why a value cannot stand in the slot as written; the types of expressions are judged later."""
    slot = declared.slot
    if slot.many != isinstance(raw, tuple):
        message = (
            f"`{declared.key}` is a list of values" if slot.many else "a list of expressions is no value here"
        )
        help = "begin each element with `- `" if slot.many else "write one expression: `{cel: [a, b]}`"
        return LiteralProblem(message, help)
    parts = raw if isinstance(raw, tuple) else (raw,)
    for at, part in enumerate(parts):
        problem = None if isinstance(part, Expression) else form_problem(slot.form, part)
        if problem is not None:
            return replace(problem, path=(*((at,) if slot.many else ()), *problem.path))
    return None


class _Targets:
    """The decisions that exceptions may name."""

    def __init__(self, units: list[Unit], keys: Mapping[DecisionKey, None]) -> None:
        self._units = units
        self._names = Names(units, keys.keys())
        self._keys = keys

    def declared(self, name: str) -> Declared | None:
        unit = self._names.speaker(name)
        if unit is None:
            return None
        field = name[len(unit.target) + 1 :]
        if not field.startswith(PREFIX):
            return self._names.declared(name)
        parameter = field.removeprefix(PREFIX)
        if parameter not in self._parameters(unit.target):
            return None
        return Declared(DecisionKey(unit.kind.name, unit.subject, field), unit.kind, PARAMETER, unit)

    def _parameters(self, target: str) -> set[str]:
        return {
            name
            for unit in self._units
            if unit.target == target and isinstance(unit.spec, PolicySpec)
            for name in unit.spec.parameters
        }

    def advice(self, name: str) -> str:
        """The decision that was probably meant, else what the target decides, else the targets there are."""
        close = self._names.meant(name)
        if close is not None and close != name:
            return f"did you mean `{close}`?"
        unit = self._names.speaker(name)
        if unit is not None:
            shown = ", ".join(f"`{field}`" for field in sorted(self._names.fields(unit.target))[:8])
            return f"`{unit.target}` decides {shown}" if shown else f"`{unit.target}` decides nothing"
        kind = name.partition(".")[0].partition("/")[0]
        of_kind = sorted({one.target for one in self._units if one.kind.name == kind})
        if of_kind:
            return "there is " + ", ".join(f"`{target}`" for target in of_kind[:8])
        near = nearest(kind, sorted({one.kind.name for one in self._units}))
        return f"did you mean the kind `{near}`?" if near else "`koordpolicy graph` shows all decisions"
