"""Permissions of roles one by one, and the table of those who need them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.parts.deployed import DEPLOY, manifests

NEEDS: Final = Path(__file__).with_name("needs.yaml")


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """A verb on a resource, `PLURAL.GROUP/SUBRESOURCE` without what is empty, that a role of processes has."""

    role: str
    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.role} {self.verb} {self.resource}"


def resource_of(group: str, name: str) -> str:
    """`nodes/status` of group "" is itself; `devices/status` of a group `devices.GROUP/status`."""
    plural, _, subresource = name.partition("/")
    return f"{plural}{'.' if group else ''}{group}{'/' if subresource else ''}{subresource}"


def granted() -> Iterator[Permission]:
    """All permissions of the roles that bindings in `deploy/rbac` give to accounts of processes."""
    documents = list(manifests(DEPLOY / "rbac"))
    bound = {
        (one["roleRef"]["kind"], one["roleRef"]["name"])
        for one in documents
        if one["kind"] in {"ClusterRoleBinding", "RoleBinding"}
    }
    for one in documents:
        if (one["kind"], one["metadata"]["name"]) in bound:
            yield from permissions_of(one)


def permissions_of(role: Mapping[str, Any]) -> Iterator[Permission]:
    """What a role permits, one by one."""
    name = f"{role['kind']}/{role['metadata']['name']}"
    for rule in role["rules"]:
        for group in rule.get("apiGroups", ()):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Permission(name, verb, resource_of(group, resource))


def read_needs() -> dict[Permission, tuple[str, ...]]:
    """The table: each permission with the files of tests that are known to ask for it, the quickest first."""
    found: dict[Permission, tuple[str, ...]] = {}
    for role, verbs in (YAML(typ="safe").load(NEEDS) or {}).items():
        for words, files in verbs.items():
            verb, _, resource = words.partition(" ")
            found[Permission(role, verb, resource)] = tuple(files)
    return found


def write_needs(needs: Mapping[Permission, tuple[str, ...]]) -> None:
    """Write the table, sorted."""
    table: dict[str, dict[str, list[str]]] = {}
    for one in sorted(needs):
        table.setdefault(one.role, {})[f"{one.verb} {one.resource}"] = list(needs[one])
    yaml = YAML()
    yaml.width = 160
    with NEEDS.open("w", encoding="utf-8") as file:
        yaml.dump(table, file)


def exists(file: str) -> bool:
    """Whether a file of tests is still there."""
    return (REPOSITORY / file).exists()
