"""What differs in documents beside their rules: whole documents, and keys that are no decisions."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.graph.diff.changes import DocumentChange, How, SettingChange
from koordpolicy.graph.notation import flow
from koordpolicy.graph.state import Unit
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import PolicySpec, cel_values, slot_values
from koordpolicy.language.kinds.bundle import PolicyTestSpec

_Key = tuple[str, str]

_RULES_SAY_IT = frozenset({"match", "variables"})
"""Keys of a policy's spec whose meaning is in its rules, which are compared themselves."""


def changed_documents(old: tuple[Unit, ...], new: tuple[Unit, ...]) -> tuple[DocumentChange, ...]:
    """Documents that came and went, and tests that changed, in the order of their names."""
    before, after = _by_key(old), _by_key(new)
    found = []
    for key in sorted(before.keys() | after.keys()):
        earlier, later = before.get(key), after.get(key)
        unit = later or earlier
        assert unit is not None
        if earlier is None or later is None:
            how = How.ADDED if earlier is None else How.REMOVED
            found.append(DocumentChange(how, unit.id, unit.document.span, _says(unit)))
        elif isinstance(unit.spec, PolicyTestSpec) and _spec(earlier) != _spec(later):
            found.append(DocumentChange(How.CHANGED, unit.id, unit.document.span, _says(unit)))
    return tuple(found)


def renamed_documents(old: tuple[Unit, ...], new: tuple[Unit, ...]) -> tuple[tuple[str, str], ...]:
    """Documents that have another name and are the same otherwise, as pairs. Where the name is the subject it is none."""
    before, after = _by_key(old), _by_key(new)
    came = [after[key] for key in sorted(after.keys() - before.keys())]
    found = []
    for key in sorted(before.keys() - after.keys()):
        gone = before[key]
        same = next((one for one in came if _is_alike(gone, one)), None)
        if same is not None:
            came.remove(same)
            found.append((gone.id, same.id))
    return tuple(found)


def _is_alike(one: Unit, other: Unit) -> bool:
    return (
        one.layer_name == other.layer_name
        and one.target == other.target
        and one.kind.name == other.kind.name
        and _spec(one) == _spec(other)
    )


def _says(unit: Unit) -> str:
    if isinstance(unit.spec, PolicyTestSpec):
        cases = len(unit.spec.cases)
        return f"{cases} case{'' if cases == 1 else 's'}"
    spec = _spec(unit)
    if unit.kind.name == "PolicyException":
        begins = f"from {spec['from']} " if "from" in spec else ""
        return f"of {spec['owner']} {begins}until {spec['expires']}"
    return ""


def changed_settings(old: tuple[Unit, ...], new: tuple[Unit, ...]) -> tuple[SettingChange, ...]:
    """Keys that are no decisions, of documents that stand in both revisions."""
    before, after = _by_key(old), _by_key(new)
    return tuple(
        change
        for key in sorted(before.keys() & after.keys())
        if _spec(before[key]) != _spec(after[key]) and not isinstance(after[key].spec, PolicyTestSpec)
        for change in _settings(before[key], after[key])
    )


def _settings(old: Unit, new: Unit) -> Iterator[SettingChange]:
    before, after = _leaves(old), _leaves(new)
    for name in dict.fromkeys((*before, *after)):
        earlier, later = before.get(name), after.get(name)
        if earlier is None or later is None or earlier[1] != later[1]:
            unit, path = (new, later[0]) if later is not None else (old, earlier[0] if earlier else ())
            yield SettingChange(
                new.id,
                name,
                None if earlier is None else flow(earlier[1]),
                None if later is None else flow(later[1]),
                unit.document.positions.key(("spec", *path)),
            )


def _leaves(unit: Unit) -> dict[str, tuple[Path, Any]]:
    """The plain keys of a document's spec by name, each with its path; decisions and their matches left out."""
    decided = {slot.path[1:] for slot in slot_values(unit.spec)} | {
        bare.path[1:] for bare in cel_values(unit.spec) if unit.kind.name != "Library"
    }
    found: dict[str, tuple[Path, Any]] = {}
    skipped = _RULES_SAY_IT | {"parameters"} if isinstance(unit.spec, PolicySpec) else frozenset()
    for key, value in _spec(unit).items():
        if key not in skipped and not (key == "overrides" and unit.kind.name == "PolicyException"):
            _collect(key, (key,), value, decided, found)
    return found


def _collect(
    name: str, path: Path, value: Any, decided: set[Path], found: dict[str, tuple[Path, Any]]
) -> None:
    """Spread a value into its plain leaves. Lists of named things are a list of names, and each of its own."""
    if path in decided:
        return
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            _collect(f"{name}.{key}", (*path, key), inner, decided, found)
    elif (
        isinstance(value, list) and value and all(isinstance(one, Mapping) and "name" in one for one in value)
    ):
        found[name] = (path, [one["name"] for one in value])
        for at, one in enumerate(value):
            rest = {key: inner for key, inner in one.items() if key != "name"}
            for key, inner in rest.items():
                _collect(f"{name}[{one['name']}].{key}", (*path, at, key), inner, decided, found)
    else:
        found[name] = (path, value)


def _by_key(units: tuple[Unit, ...]) -> dict[_Key, Unit]:
    return {(unit.layer_name, unit.id): unit for unit in units}


def _spec(unit: Unit) -> Mapping[str, Any]:
    spec = unit.document.data.get("spec")
    return spec if isinstance(spec, Mapping) else {}
