"""Documents that decide nothing, because what their kind is about is nowhere said."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from koordpolicy.diagnostics import Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.expressions import Path
from koordpolicy.graph.needs import NEEDS
from koordpolicy.graph.state import State, Unit

ITEM_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "filters": ("plugin", "require"),
        "scores": ("plugin", "value"),
        "steps": ("hold", "untilResumed"),
        "guards": ("require",),
        "conditions": ("require",),
        "strategies": ("candidates",),
    }
)
"""Fields of which one at least must be said for each entry of a list of named things: of scheduling profiles, of descheduling, of rollouts."""


def required(state: State) -> None:
    """KP311 for each subject, filter and score without anything to carry out."""
    first: dict[str, Unit] = {}
    for unit in state.units:  # the lowest layer comes first: it introduces the subject
        first.setdefault(unit.target, unit)
    drafted = {(draft.key.target, draft.key.field) for draft in state.drafts}
    said = {(key.target, key.field) for key in state.decisions} | drafted
    for target, unit in first.items():
        needs = NEEDS.get(unit.kind.name)
        if needs is not None and not any((target, field) in said for field in needs):
            missing = f"`{target}` has no {_either(needs[:2])}"
            _report(state, unit.document.span, missing, needs[:2], "document", pack=_without_packs(state))
    items = list(_items(state))
    for target, (list_name, name), (unit, path) in items:
        needs = ITEM_NEEDS[list_name]
        if not any((target, f"{list_name}[{name}].{one}") in said for one in needs):
            whole = (other for t, (n, other), _ in items if (t, n) == (target, list_name) and other != name)
            close = nearest(
                name, (o for o in whole if any((target, f"{list_name}[{o}].{n}") in said for n in needs))
            )
            place = unit.document.positions.value(path)
            _report(state, place, f"`{name}` of `{target}` has {_lacks(needs)}", needs, "entry", close)


def _items(state: State) -> Iterator[tuple[str, tuple[str, str], tuple[Unit, Path]]]:
    """The named entries of lists: target, (list, name), and where the name first stands: document and path."""
    seen: set[tuple[str, str, str]] = set()
    for unit in state.units:
        for list_name in ITEM_NEEDS:
            for at, item in enumerate(getattr(unit.spec, list_name, None) or ()):
                if (unit.target, list_name, item.name) not in seen:
                    seen.add((unit.target, list_name, item.name))
                    yield unit.target, (list_name, item.name), (unit, ("spec", list_name, at, "name"))


def _lacks(needs: tuple[str, ...]) -> str:
    return f"no `{needs[0]}`" if len(needs) == 1 else f"neither {_either(needs, 'nor')}"


def _either(fields: tuple[str, ...], word: str = "and no") -> str:
    return f" {word} ".join(f"`{field}`" for field in fields)


def _without_packs(state: State) -> bool:
    """Whether the bundle extends nothing, so that every formula is its own."""
    return len(state.layers) == 1


def _report(
    state: State,
    place: Span,
    problem: str,
    needs: tuple[str, ...],
    what: str,
    close: str | None = None,
    *,
    pack: bool = False,
) -> None:
    names = " or ".join(f"`{field}`" for field in needs)
    other = ", or extend the built-in pack by `extends: [koordinator]`" if pack else ""
    help = f"say {names}{other}; without it the {what} has no effect"
    state.found.add("KP311", place, problem, help=f"did you mean `{close}`? Else {help}" if close else help)
