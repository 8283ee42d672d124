"""ClusterColocationProfile objects as ColocationProfile policies, and back."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.graph.exchange.documents import API_VERSION, SOURCE, Imported, Taken
from koordpolicy.graph.state import Unit
from koordpolicy.model.labels import read_selector
from koordpolicy.model.protocol import CONFIG_API, SKIP_UPDATE_RESOURCES
from koordpolicy.model.reading import ObjectError

KIND: Final = "ClusterColocationProfile"
_SELECTORS: Final = {"selector": "pods", "namespaceSelector": "namespaces"}
_SAME: Final = {
    "qosClass": "qosClass",
    "priorityClassName": "priorityClassName",
    "koordinatorPriority": "subPriority",
    "schedulerName": "schedulerName",
    "labels": "labels",
    "annotations": "annotations",
    "labelKeysMapping": "copyLabels",
    "annotationKeysMapping": "copyAnnotations",
    "labelSuffixes": "labelSuffixes",
    "patch": "patch",
}
"""Fields that are called otherwise in policies, if at all, and say the same."""


def import_profile(obj: Mapping[str, Any]) -> Imported:
    """The policy that does what a profile does, with the table of its fields."""
    name = str(obj["metadata"]["name"])
    source = f"{KIND}/{name}"
    result = Imported()
    given = dict(obj.get("spec") or {})
    spec: dict[str, Any] = {}
    match: dict[str, Any] = {}
    for field, selector in _SELECTORS.items():
        said = given.pop(field, None)
        if said is None:
            continue
        try:
            read_selector(said)
        except ObjectError as error:
            # Koordinator takes a selector that fails for one that matches.
            result.table.append(
                Taken(f"{source}.{field}", reason=f"it makes no sense ({error}), and matches all")
            )
            continue
        if any(said.values()):
            match[selector] = {key: value for key, value in said.items() if value}
        result.table.append(Taken(f"{source}.{field}", f"ColocationProfile/{name}.match.{selector}"))
    if match:
        spec["match"] = match
    probability = given.pop("probability", None)
    if probability is not None:
        _probability(result, spec, source, name, probability)
    for field, value in given.items():
        if field not in _SAME:
            result.table.append(Taken(f"{source}.{field}", reason="nothing in policies says that"))
        elif value not in (None, "", {}):
            spec[_SAME[field]] = value
            result.table.append(Taken(f"{source}.{field}", f"ColocationProfile/{name}.{_SAME[field]}"))
    if SKIP_UPDATE_RESOURCES in (obj["metadata"].get("annotations") or {}):
        spec["resourceTranslation"] = "Never"
        result.table.append(
            Taken(f"{source} ({SKIP_UPDATE_RESOURCES})", f"ColocationProfile/{name}.resourceTranslation")
        )
    spec["sampling"] = "AtMost"
    result.documents.append(
        {
            "apiVersion": API_VERSION,
            "kind": "ColocationProfile",
            "metadata": {"name": name, "annotations": {SOURCE: source}},
            "spec": spec,
        }
    )
    return result


def _probability(result: Imported, spec: dict[str, Any], source: str, name: str, said: Any) -> None:
    text = str(said).removesuffix("%")
    if not text.lstrip("-").isdigit():
        result.table.append(Taken(f"{source}.probability", reason=f"`{said}` is no percentage"))
        return
    # Less than 0 is never to Koordinator, and more than 100 always.
    spec["probability"] = f"{min(max(int(text), 0), 100)}%"
    result.table.append(Taken(f"{source}.probability", f"ColocationProfile/{name}.probability"))


def export_profile(unit: Unit) -> tuple[dict[str, Any] | None, list[Taken]]:
    """The profile that does what a policy does; None, with the reasons, where none can."""
    name, source = unit.document.name, unit.target
    said: dict[str, Any] = dict(_object(unit.document.data["spec"]))
    refused = [Taken(f"{source}.{field}", reason=reason) for field, reason in _refusals(said)]
    if refused:
        return None, refused
    fields: dict[str, Any] = {}
    match = said.get("match") or {}
    for field, selector in _SELECTORS.items():
        if selector in match:
            fields[field] = match[selector]
    if "probability" in said:
        fields["probability"] = said["probability"]
    back = {policy: field for field, policy in _SAME.items()}
    fields.update({back[policy]: value for policy, value in said.items() if policy in back})
    metadata: dict[str, Any] = {"name": name}
    if said.get("resourceTranslation") == "Never":
        metadata["annotations"] = {SKIP_UPDATE_RESOURCES: "true"}
    found = {"apiVersion": CONFIG_API, "kind": KIND, "metadata": metadata, "spec": fields}
    return found, [Taken(source, f"{KIND}/{name}")]


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_KNOWN: Final = frozenset({*_SAME.values(), "match", "probability", "sampling", "resourceTranslation"})


def _refusals(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in said:
        if field not in _KNOWN:
            yield field, "Koordinator's profiles have nothing like it"
        elif _has_expression(said[field]):
            yield field, "it is an expression"
    if "condition" in (said.get("match") or {}):
        yield "match.condition", "Koordinator's profiles have selectors alone"
    sampled = said.get("probability", "100%") not in ("0%", "99%", "100%")
    if sampled and said.get("sampling") != "AtMost":
        yield "sampling", "Koordinator takes one percent more of the pods"
    if said.get("resourceTranslation", "Never") != "Never":
        yield "resourceTranslation", "Koordinator's profiles can only forbid it"


def _has_expression(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return set(value) == {"cel"} or any(map(_has_expression, value.values()))
