"""Quotas that policy gives: guarantees that hold, bounds that fit, parents that are there, weights that leave nobody out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.diagnostics import Note, Severity, Span
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel.types import AMOUNT, STRING, map_of
from koordpolicy.language.kinds import literal_value
from koordpolicy.language.kinds.literals import BadLiteral
from koordpolicy.language.kinds.quotas import QuotaTreeSpec
from koordpolicy.model.protocol import CPU, ROOT_QUOTA
from koordpolicy.model.quantity import Notation, Quantity

_AMOUNTS: Final = map_of(STRING, AMOUNT)
_BOUNDS: Final = ("min", "max", "weight")


@dataclass(slots=True)
class _Quota:
    """A quota as all documents say it together, as far as they do so by literals; where each thing stands."""

    name: str
    span: Span
    parent: str = ROOT_QUOTA
    enabled: bool = True
    tree: str | None = None
    amounts: dict[str, Mapping[str, int]] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)

    def place(self, name: str) -> Span:
        """Where a field is said, or the quota."""
        return self.spans.get(name, self.span)


def quota_trees(state: State) -> None:
    """KP414 for a quota whose bounds do not fit, which has no parent, or that is starved by a weight of nothing."""
    if state.found.has_errors:
        return
    quotas = _quotas(state)
    for quota in quotas.values():
        _bounds(state, quota)
        _parent(state, quota, quotas)
        _weights(state, quota)
    for parent in {one.parent for one in quotas.values()}:
        if parent in quotas:
            _children(state, quotas[parent], [one for one in quotas.values() if one.parent == parent])


def _quotas(state: State) -> dict[str, _Quota]:
    found: dict[str, _Quota] = {}
    for unit in sorted(state.units, key=lambda unit: (unit.rank, unit.id)):  # the winning one last
        if isinstance(unit.spec, QuotaTreeSpec):
            for at, entry in enumerate(unit.spec.quotas):
                _read(found, unit, at, entry)
    return {name: one for name, one in found.items() if one.enabled}


def _read(found: dict[str, _Quota], unit: Unit, at: int, entry: Any) -> None:
    positions, path = unit.document.positions, ("spec", "quotas", at)
    quota = found.setdefault(entry.name, _Quota(entry.name, positions.value((*path, "name"))))
    if isinstance(entry.parent, str):
        quota.parent, quota.spans["parent"] = entry.parent or ROOT_QUOTA, positions.value((*path, "parent"))
    if isinstance(entry.tree, str):
        quota.tree, quota.spans["tree"] = entry.tree, positions.value((*path, "tree"))
    if isinstance(entry.enabled, bool):
        quota.enabled = entry.enabled
    for name in _BOUNDS:
        said = getattr(entry, name)
        if isinstance(said, dict):
            try:
                quota.amounts[name] = literal_value(_AMOUNTS, said)  # type: ignore[assignment]  # the type says so
            except BadLiteral:
                continue  # whoever checks literals has told of it
            quota.spans[name] = positions.value((*path, name))


def _bounds(state: State, quota: _Quota) -> None:
    least, most = quota.amounts.get("min", {}), quota.amounts.get("max", {})
    for key, number in least.items():
        if key in most and number > most[key]:
            _tell(
                state,
                quota.place("min"),
                f"`{quota.name}` is guaranteed {_shown(key, number)} {key}, and may have {_shown(key, most[key])}",
                "raise `max`, or guarantee less",
                Note("its max", quota.place("max")),
            )
        elif key not in most:
            _tell(
                state,
                quota.place("min"),
                f"`{quota.name}` does not track {key}, of which it is guaranteed {_shown(key, number)}",
                f"say how much {key} it may have under `max`",
            )


def _parent(state: State, quota: _Quota, quotas: Mapping[str, _Quota]) -> None:
    seen, at = {quota.name}, quota.parent
    while at in quotas and at not in seen:
        seen.add(at)
        at = quotas[at].parent
    if at == quota.name:
        _tell(
            state,
            quota.place("parent"),
            f"`{quota.name}` stands below itself, and nothing is shared with it",
            "let one of them stand below the root: remove its `parent`",
        )
    elif quota.parent != ROOT_QUOTA and quota.parent not in quotas:
        _tell(
            state,
            quota.place("parent"),
            f"`{quota.name}` has nothing unless there is an object of its parent `{quota.parent}`",
            "name a quota that is given here, or one of the cluster",
        )


def _weights(state: State, quota: _Quota) -> None:
    weight, least, most = (quota.amounts.get(name, {}) for name in ("weight", "min", "max"))
    if not any(weight.values()):
        return  # then its max is its weight
    for key, number in most.items():
        if not weight.get(key, 0) and number > least.get(key, 0):
            _tell(
                state,
                quota.place("weight"),
                f"`{quota.name}` has no weight for {key}, and never more of it than its min, {_shown(key, least.get(key, 0))}",
                f"give it a weight for {key}, or the same `max` as `min`",
            )


def _children(state: State, parent: _Quota, children: list[_Quota]) -> None:
    for one in children:
        _below(state, parent, one)
    if "min" not in parent.amounts and "max" not in parent.amounts:
        return
    keys = {key: None for one in children for key in one.amounts.get("min", {})}
    for key in keys:
        together = sum(one.amounts.get("min", {}).get(key, 0) for one in children)
        limit = parent.amounts.get("min", {}).get(key, 0)
        if together > limit:
            largest = max(children, key=lambda one: one.amounts.get("min", {}).get(key, 0))
            _tell(
                state,
                parent.place("min"),
                f"`{parent.name}` is guaranteed {_shown(key, limit)} {key}, and those below it "
                f"{_shown(key, together)} together",
                "guarantee it as much as all below it",
                Note(f"`{largest.name}` has most", largest.place("min")),
            )


def _below(state: State, parent: _Quota, quota: _Quota) -> None:
    """Whether what a quota says of itself holds below its parent."""
    if quota.tree is not None and quota.tree != (parent.tree or ""):
        _tell(
            state,
            quota.place("tree"),
            f"`{quota.name}` stands in tree `{quota.tree}`, and its parent `{parent.name}` in "
            + (f"`{parent.tree}`" if parent.tree else "the default one"),
            "a tree is one from its root down: give both the same `tree`, or let it stand below the root",
            Note("its parent", parent.place("tree")),
        )
    tracked = parent.amounts.get("max")
    unheld = [] if not tracked else sorted(quota.amounts.get("max", {}).keys() - tracked.keys())
    if unheld:
        what = ", ".join(unheld)
        _tell(
            state,
            quota.place("max"),
            f"`{quota.name}` may have so much {what}, of which nothing is shared out, since `{parent.name}` does not track it: "
            "its pods are not held to it",
            f"say how much {what} `{parent.name}` may have under `max`",
            Note("its parent", parent.place("max")),
        )


def _tell(state: State, place: Span, message: str, help: str, *notes: Note) -> None:
    state.found.add("KP414", place, message, severity=Severity.WARNING, help=help, notes=notes)


def _shown(resource: str, number: int) -> str:
    return str(Quantity.of_milli(number) if resource == CPU else Quantity.of(number, Notation.BINARY))
