"""The walk over a document finds every slot and expression, with the decision's field and the place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.language.cel.types import CPU, PERCENT
from koordpolicy.language.facts import ROOTS
from koordpolicy.language.kinds import (
    KINDS,
    Condition,
    Expression,
    PolicyModel,
    PolicySpec,
    Slot,
    Spec,
    cel_values,
    slot_values,
    slots,
)
from koordpolicy.language.kinds.document import DOCUMENTS
from koordpolicy.language.kinds.fields import Given, ItemName, yaml_name
from koordpolicy.language.kinds.slots import Value
from tests.unit.language.kinds.samples import sample


def spec_of(kind: str, spec: dict[str, Any]) -> Spec:
    return KINDS[kind].spec.model_validate(spec)


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def fields(spec: Spec) -> dict[str, Any]:
    return {value.field: value for value in slot_values(spec)}


def generic(field: str) -> str:
    """The field of a slot as `slots` names it."""
    parts = field.split("[")
    starred = parts[0] + "".join("[*]" + part.partition("]")[2] for part in parts[1:])
    head, dot, _ = starred.partition("parameters.")
    return f"{head}{dot}*" if dot else starred


@pytest.mark.parametrize("kind", KINDS)
def test_every_slot_of_a_full_document_is_found(kind: str) -> None:
    document = sample(kind)
    spec = DOCUMENTS[kind].model_validate(document).spec
    found = list(slot_values(spec))
    assert {generic(value.field) for value in found} == {path.field for path in slots(KINDS[kind].spec)}
    for value in found:
        written = at(document, value.path)
        assert written == value.raw or value.slot.many


def test_names_of_fields() -> None:
    spec = spec_of(
        "SchedulingProfile",
        {
            "schedulerName": "s",
            "parameters": {"a": 1, "b": {"type": "percent", "value": {"cel": "x"}}, "c": {"type": "cpu"}},
            "queue": {"order": [{"cel": "-pod.priority"}, 5]},
            "filters": [
                {"name": "F", "parameters": {"p": 1}, "match": {"condition": "c"}, "require": {"cel": "r"}},
                {"name": "G", "reason": "no"},
            ],
        },
    )
    found = fields(spec)
    assert list(found) == [
        "parameters.a", "parameters.b", "queue.order", "filters[F].parameters.p", "filters[F].require", "filters[G].reason",
    ]  # fmt: skip
    assert found["parameters.a"].path == ("spec", "parameters", "a")
    assert found["parameters.b"].path == ("spec", "parameters", "b", "value")
    assert found["parameters.b"].slot.type == PERCENT
    assert list(found["parameters.b"].expressions) == [(("spec", "parameters", "b", "value", "cel"), "x")]
    assert found["queue.order"].raw == (Expression("-pod.priority"), 5)
    assert list(found["queue.order"].expressions) == [(("spec", "queue", "order", 0, "cel"), "-pod.priority")]
    condition = ("spec", "filters", 0, "match", "condition")
    assert found["filters[F].require"].conditions == (condition,)
    assert found["filters[F].parameters.p"].conditions == (condition,)
    assert found["filters[G].reason"].conditions == ()


def test_keys_of_mappings_name_their_decisions() -> None:
    spec = spec_of("ColocationProfile", {"labels": {"a/b": "x", "c": {"cel": "y"}}})
    found = fields(spec)
    assert list(found) == ["labels[a/b]", "labels[c]"]
    assert found["labels[c]"].path == ("spec", "labels", "c")


class Inner(PolicyModel):
    """What a mapping of structures holds."""

    match: Given[Condition] = None
    """When."""
    limit: Annotated[Value, Slot(CPU, "A limit.")] = None


class Outer(PolicySpec):
    """A kind that has a mapping of structures."""

    classes: dict[ItemName, Inner] = {}  # noqa: RUF012 - pydantic copies it
    """By class."""


def test_mappings_of_structures_are_walked() -> None:
    assert [path.field for path in slots(Outer)] == ["parameters.*", "classes[*].limit"]
    spec = Outer.model_validate({"classes": {"BE": {"match": {"condition": "x"}, "limit": 4}}})
    (value,) = slot_values(spec)
    assert (value.field, value.path) == ("classes[BE].limit", ("spec", "classes", "BE", "limit"))
    assert value.conditions == (("spec", "classes", "BE", "match", "condition"),)
    (bare,) = cel_values(spec)
    assert bare.path == ("spec", "classes", "BE", "match", "condition")


def test_bare_expressions_are_found() -> None:
    yaml = YAML(typ="safe", pure=True)

    def texts(kind: str) -> Iterator[tuple[str, str]]:
        document = yaml.load(Path(__file__).parent / "valid" / f"{kind}.yaml")
        for value in cel_values(DOCUMENTS[kind].model_validate(document).spec):
            assert at(document, value.path) == value.text
            yield value.field, value.text

    assert dict(texts("ColocationProfile")) == {
        "match.condition": 'pod.ownerKind == "Job"',
        "variables[small].expression": 'pod.request.cpu < cpu("4")',
    }
    assert set(dict(texts("SchedulingProfile"))) == {
        "filters[node-load].match.condition",
        "scores[balance].match.condition",
    }
    assert set(dict(texts("Library"))) == {"functions[spare].expression", "functions[one].expression"}


def test_subjects() -> None:
    subject = {name: kind.subject for name, kind in KINDS.items()}
    assert subject["Overcommit"](spec_of("Overcommit", {"resource": "mid"}), "n") == "mid"
    assert subject["SchedulingProfile"](spec_of("SchedulingProfile", {"schedulerName": "s"}), "n") == "s"
    assert subject["QoSClass"](spec_of("QoSClass", {}), "lse") == "lse"
    assert subject["CPUSuppress"](spec_of("CPUSuppress", {}), "n") == ""


def test_selectors_follow_from_the_facts() -> None:
    assert KINDS["Overcommit"].selectors == {"nodes"}
    assert KINDS["AdmissionRule"].selectors == {"namespaces", "nodes", "pods"}
    assert KINDS["QoSClass"].selectors == frozenset()


def test_roots_are_declared() -> None:
    for kind in KINDS.values():
        used = set(kind.roots).union(*(path.slot.roots or () for path in slots(kind.spec)))
        assert used <= set(ROOTS)
        more = {name for path in slots(kind.spec) for name in path.slot.roots or ()} - kind.roots
        assert more == _ONLY_IN_SLOTS.get(kind.name, set())


_ONLY_IN_SLOTS = {
    "SchedulingProfile": {"victim", "nominated", "candidate"},
    "GangScheduling": {"pod", "gangDeclaration", "gang", "podGroup", "victim"},
    "QuotaTree": {
        "pod",
        "victim",
        "namespaceObject",
        "quota",
        "victimQuota",
        "oldQuota",
        "parentQuota",
        "namespaceQuotas",
    },
    "QuotaProfile": {"node", "resource"},
    "Descheduling": {"relief", "target"},
    "Migration": {"replicas"},
    "ProfileReconciliation": {"colocationProfile"},
    "CPUTopology": {"resourceSpec", "topology"},
    "ReservationPolicy": {"pod"},
    "DeviceSharing": {"allocated", "container", "device", "devices"},
    "Recommendation": {"pod", "container"},
    "YARNNode": {"yarn"},
}
"""Roots that only some slots of a kind have, since there is such a record at their decision points alone."""


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("whole_cpus", "wholeCPUs"),
        ("minimum_cpus", "minimumCPUs"),
        ("cpu_binding", "cpuBinding"),
        ("from_", "from"),
        ("qos_class", "qosClass"),
        ("on_missing", "onMissing"),
        ("cpu", "cpu"),
        ("per_cpu_limit", "perCPULimit"),
    ],
)
def test_keys(name: str, key: str) -> None:
    assert yaml_name(name) == key
