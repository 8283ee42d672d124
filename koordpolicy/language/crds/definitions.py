"""The definitions themselves: one a policy kind, and PolicyRevision's."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from koordpolicy.language.crds.revision import STATUS, revision_schema
from koordpolicy.language.crds.structural import Schema, structural
from koordpolicy.language.kinds import API_VERSION, KINDS
from koordpolicy.language.schema import schemas

GROUP, _, VERSION = API_VERSION.partition("/")

_HEADER = """\
# Made by `koordpolicy schema --crds` from the models of the kinds; changes here are lost.
"""
_WIDTH = 110

Column = dict[str, Any]

_READY = '.status.conditions[?(@.type=="Ready")]'
_POLICY_COLUMNS: tuple[Column, ...] = (
    {"name": "Ready", "type": "string", "jsonPath": f"{_READY}.status"},
    {"name": "Reason", "type": "string", "jsonPath": f"{_READY}.reason"},
    {"name": "Revision", "type": "string", "jsonPath": ".status.revision"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Message", "type": "string", "jsonPath": f"{_READY}.message", "priority": 1},
)
_REVISION_COLUMNS: tuple[Column, ...] = (
    {"name": "Bundle", "type": "string", "jsonPath": ".spec.bundle"},
    {"name": "Ready", "type": "string", "jsonPath": f"{_READY}.status"},
    {"name": "Reason", "type": "string", "jsonPath": f"{_READY}.reason"},
    {"name": "Revision", "type": "string", "jsonPath": ".spec.revision"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.rollout.phase"},
    {"name": "Agents", "type": "string", "jsonPath": ".status.agents.summary"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Message", "type": "string", "jsonPath": f"{_READY}.message", "priority": 1},
)


def definitions() -> dict[str, Schema]:
    """Every CustomResourceDefinition by its kind: the policy kinds in their order, then PolicyRevision."""
    known = schemas()
    found = {
        kind: _definition(kind, _document(known[kind]), _POLICY_COLUMNS, "koordpolicy") for kind in KINDS
    }
    found["PolicyRevision"] = _definition(
        "PolicyRevision", revision_schema(), _REVISION_COLUMNS, "koordpolicy", short=("polrev",)
    )
    return found


def plural_of(kind: str) -> str:
    """The plural under which the API serves a kind: `libraries`, `qosclasses`, `overcommits`."""
    word = kind.lower()
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("s") else "s")


def crd_files() -> dict[str, str]:
    """Name and text of every file: `koordpolicy.io_overcommits.yaml`."""
    return {f"{GROUP}_{plural_of(kind)}.yaml": _HEADER + _yaml(made) for kind, made in definitions().items()}


def write_crds(directory: Path) -> list[Path]:
    """Write all definitions into a directory, made if need be; gives the files. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in crd_files().items():
        path = directory / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _document(schema: Mapping[str, Any]) -> Schema:
    """The schema of a document as an object of the cluster: its spec as the models say, and a status."""
    spec = structural(schema["properties"]["spec"], schema["$defs"])
    return {
        "description": schema["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": STATUS,
        },
    }


def _definition(
    kind: str, schema: Schema, columns: tuple[Column, ...], category: str, short: tuple[str, ...] = ()
) -> Schema:
    """A cluster-scoped definition: a policy speaks of the whole cluster, whatever its match narrows it to."""
    plural = plural_of(kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "koordpolicy"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "categories": [category],
                **({"shortNames": list(short)} if short else {}),
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [dict(column) for column in columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _yaml(data: Schema) -> str:
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.width = _WIDTH
    writer.representer.ignore_aliases = lambda _data: True
    out = StringIO()
    writer.dump(data, out)
    return out.getvalue()
