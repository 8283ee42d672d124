"""What stands in `deploy/crds` is what the models say now, and what the code asks the API server for."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.kube import resources
from koordpolicy.language.crds import crd_files, definitions
from koordpolicy.language.crds.definitions import plural_of
from koordpolicy.language.crds.structural import structural
from koordpolicy.language.kinds import KINDS
from koordpolicy.model.policy_revision import (
    Instance,
    InstanceState,
    LaggingAgent,
    LaggingState,
    PolicyRevision,
    RevisionAgents,
    RevisionStatus,
    RolloutState,
    ShownDiagnostic,
    StatusCondition,
    to_json,
)

SERVED = [
    one for one in resources.RESOURCES if one.custom and (one not in resources.POLICIES or one.kind in KINDS)
]
FREE = "x-kubernetes-preserve-unknown-fields"


@pytest.fixture(scope="module")
def written(repository: Path) -> dict[str, dict[str, Any]]:
    """Every definition in the folder, Koordinator's too, by its name."""
    files = sorted((repository / "deploy" / "crds").glob("*_*.yaml"))
    read = [YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8")) for file in files]
    return {definition["metadata"]["name"]: definition for definition in read}


@pytest.fixture(scope="module")
def made() -> Mapping[str, str]:
    """What the kinds say now: file -> text."""
    return crd_files()


def test_the_definitions_are_fresh(
    made: Mapping[str, str], repository: Path, golden: Callable[[Path, str], None]
) -> None:
    for name, text in made.items():
        golden(repository / "deploy" / "crds" / name, text)


def test_no_definition_of_ours_stands_there_that_no_kind_makes(
    made: Mapping[str, str], repository: Path
) -> None:
    there = {path.name for path in (repository / "deploy" / "crds").glob("koordpolicy.io_*")}
    assert there - set(made) == set()


KUSTOMIZATION = """\
# All definitions: Koordinator's objects and the policy kinds.
#
#     kubectl apply --server-side -k deploy/crds
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
"""


def test_kustomize_lists_every_file(repository: Path, golden: Callable[[Path, str], None]) -> None:
    folder = repository / "deploy" / "crds"
    names = sorted(path.name for path in folder.glob("*_*.yaml"))
    golden(folder / "kustomization.yaml", KUSTOMIZATION + "".join(f"  - {name}\n" for name in names))


@pytest.mark.parametrize("resource", SERVED, ids=str)
def test_what_the_code_asks_for_is_defined(
    resource: resources.Resource, written: dict[str, dict[str, Any]]
) -> None:
    spec = written[str(resource)]["spec"]
    [version] = spec["versions"]
    assert spec["names"]["kind"] == resource.kind
    assert spec["names"]["plural"] == resource.plural
    assert version["name"] == resource.version
    assert (spec["scope"] == "Namespaced") == resource.namespaced
    assert ("status" in version.get("subresources", {})) == resource.has_status


def test_every_definition_is_asked_for(written: dict[str, dict[str, Any]]) -> None:
    assert set(written) <= {str(resource) for resource in resources.RESOURCES}


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Library", "libraries"), ("QoSClass", "qosclasses"), ("CPUSuppress", "cpusuppresses"), ("Day", "days")],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema, itself first."""
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


def schemas(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Every schema within a definition."""
    return list(nodes(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))


def test_nothing_is_filled_in(written: dict[str, dict[str, Any]]) -> None:
    """A default would stand in the object but not in Git: out of sync for ever."""
    assert [name for name, one in written.items() for schema in schemas(one) if "default" in schema] == []


def test_every_list_says_how_it_merges(written: dict[str, dict[str, Any]]) -> None:
    assert [
        (name, schema)
        for name, one in written.items()
        for schema in schemas(one)
        if schema.get("type") == "array" and "x-kubernetes-list-type" not in schema
    ] == []


def test_patterns_are_of_go(written: dict[str, dict[str, Any]]) -> None:
    assert [
        schema["pattern"]
        for one in written.values()
        for schema in schemas(one)
        if any(look in schema.get("pattern", "") for look in ("(?!", "(?=", "(?<"))
    ] == []


@pytest.mark.parametrize("kind", [*KINDS, "PolicyRevision"])
def test_every_kind_has_status_and_columns(kind: str) -> None:
    [version] = definitions()[kind]["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert {"Ready", "Reason", "Revision", "Age"} <= {
        column["name"] for column in version["additionalPrinterColumns"]
    }
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert {"observedGeneration", "conditions", "diagnostics", "diagnosticsTotal"} <= set(status)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a reference is followed, its own words stay": (
        {"$ref": "#/$defs/name", "description": "Mine."},
        {"description": "Mine.", "type": "string", "maxLength": 9},
    ),
    "a free mapping stays free": ({"type": "object"}, {"type": "object", FREE: True}),
    "entries of a mapping have one form": (
        {"type": "object", "propertyNames": {"pattern": "a"}, "additionalProperties": {"$ref": "#/name"}},
        {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}},
    ),
    "named entries merge by name": (
        {
            "type": "array",
            "maxItems": 3,
            "items": {"type": "object", "properties": {"name": {"$ref": "#/name"}}, "required": ["name"]},
        },
        {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 9}},
                "required": ["name"],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    "a choice of texts or an expression binds texts only": (
        {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"$ref": "#/expression"}], "default": "a"},
        {
            "description": "A value, or `{cel: expression}`.",
            FREE: True,
            "pattern": "^(?:a|b)$",
            "required": ["cel"],
            "maxProperties": 1,
        },
    ),
    "bounds of numbers stay while they are exact": (
        {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, {"type": "string"}]},
        {"description": "A value, or `{cel: expression}`.", FREE: True, "minimum": 0},
    ),
    "a mapping or an expression is a mapping": (
        {"anyOf": [{"type": "object", "additionalProperties": {}}, {"$ref": "#/expression"}]},
        {"description": "A value, or `{cel: expression}`.", "type": "object", FREE: True},
    ),
    "look-ahead goes": (
        {"type": "string", "pattern": "^(?:a)$(?!\\n)"},
        {"type": "string", "pattern": "^(?:a)$"},
    ),
}
SHARED = {
    "name": {"type": "string", "maxLength": 9},
    "expression": {"type": "object", "properties": {"cel": {"type": "string"}}, "required": ["cel"]},
}


@pytest.mark.parametrize("case", CASES)
def test_structural(case: str) -> None:
    given, expected = CASES[case]
    assert structural(given, SHARED) == expected


def test_the_typed_revision_says_what_its_definition_knows() -> None:
    """Every field of the value is in the schema, and the other way round."""
    whole = PolicyRevision(
        "shop",
        "c" * 40,
        "d" * 64,
        "c" * 40,
        "https://git.example/shop",
        RevisionStatus(
            3,
            (StatusCondition("Ready", "False", "CompileFailed", "no", "2026-01-01T00:00:00Z", 3),),
            (ShownDiagnostic("error", "KP204", "units", "a.yaml", 3, 9),),
            1,
            120,
            (
                Instance(
                    "agent-1",
                    "agent",
                    InstanceState.CANARY,
                    "node-1",
                    "2026-01-01T00:00:00Z",
                    ("patch nodes",),
                ),
            ),
            RolloutState("Canary", 1, "waiting"),
            RevisionAgents(
                *(1, 1, 1, 1, 1, 1, 6),
                (LaggingAgent("n", LaggingState.BEHIND, "d", "CompileFailed", "no"),),
                "few",
                1,
            ),
        ),
    )
    schema = definitions()["PolicyRevision"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    written = to_json(whole)
    known = {part: properties(schema["properties"][part]) for part in ("spec", "status")}
    # What a rollout notes down beside its phase is its own affair.
    rollout = keys(written["status"])["rollout"]
    assert rollout.keys() <= known["status"]["rollout"].keys()
    known["status"]["rollout"] = rollout
    assert {part: keys(written[part]) for part in known} == known


def keys(value: Any) -> Any:
    """The keys of plain data, at every level; of a list those of its first entry."""
    if isinstance(value, list):
        return keys(value[0])
    return {key: keys(inner) for key, inner in value.items()} if isinstance(value, dict) else {}


def properties(schema: dict[str, Any]) -> Any:
    """The keys that a schema permits, at every level."""
    inner = schema.get("items", schema)
    return {key: properties(child) for key, child in inner.get("properties", {}).items()}
