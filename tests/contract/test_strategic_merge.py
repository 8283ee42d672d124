"""Strategic merge patches: whatever one sends, both clusters make the same of it."""

import asyncio
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from koordpolicy.kube import KubeError, StrategicPatch
from koordpolicy.kube.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, SERVICES
from tests.contract.clusters import World, contract

CASES: list[dict[str, Any]] = YAML(typ="safe").load(
    Path(__file__).with_name("cases") / "strategic_merge.yaml"
)

APP = {"app": "web"}
CONTAINERS = {"containers": [{"name": "main", "image": "pause"}]}
RESOURCES = {
    "template": REPLICA_SETS,
    "pod": PODS,
    "node": NODES,
    "service": SERVICES,
    "budget": POD_DISRUPTION_BUDGETS,
}


def difference(expected: Any, found: Any, place: str = "") -> str:
    """The first place at which what is found is not as expected; "" when there is none."""
    if expected is None or expected == {}:
        return "" if not found else f"{place}: {found} is there"
    if isinstance(expected, dict) and isinstance(found, dict):
        below = (difference(value, found.get(name), f"{place}.{name}") for name, value in expected.items())
        return next(filter(None, below), "")
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        below = (difference(*both, f"{place}[]") for both in zip(expected, found, strict=True))
        return next(filter(None, below), "")
    return "" if type(expected) is type(found) and expected == found else f"{place}: {found}, not {expected}"


def filled(base: Any, more: Any) -> Any:
    """Two trees in one; what `more` says goes first."""
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{name: filled(base.get(name, {}), value) for name, value in more.items()}}


def draft(case: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The object before the patch, without its status."""
    needed: dict[str, Any] = {}
    if case["of"] == "template":
        template = {"metadata": {"labels": APP}, "spec": CONTAINERS}
        needed = {"spec": {"replicas": 0, "selector": {"matchLabels": APP}, "template": template}}
    elif case["of"] == "pod":
        needed = {"spec": CONTAINERS}
    return needed if "status" in case else filled(needed, below(path, case["given"]))


def below(path: tuple[str, ...], value: Any) -> Any:
    return {path[0]: below(path[1:], value)} if path else value


async def outcome(world: World, number: int, case: dict[str, Any]) -> str:
    """What is wrong with a case; "" when it is as expected."""
    resource, name = RESOURCES[case["of"]], world.name(f"case{number}")
    where: dict[str, Any] = {"namespace": world.namespace} if resource.namespaced else {}
    path: tuple[str, ...] = ("spec", "template") if case["of"] == "template" else ()
    obj = draft(case, path)
    await world.cluster.create(
        resource, {**obj, "metadata": {**obj.get("metadata", {}), "name": name}}, **where
    )
    if "status" in case:
        path, where["subresource"] = ("status",), "status"
        await world.cluster.patch(resource, name, StrategicPatch({"status": case["given"]}), **where)
    patch = StrategicPatch(below(path, case["patch"]))
    try:
        found: Any = await world.cluster.patch(resource, name, patch, dry_run=True, **where)
    except KubeError as error:
        return "" if "refused" in case else f"refused: {error}"
    if "refused" in case:
        return "accepted"
    for field in path:
        found = found[field]
    return difference(case["expect"], found)


@contract
async def test_each_patch_does_the_same_everywhere(world: World) -> None:
    # All at once: our client asks again where the server answers a bad patch with an error of its own.
    outcomes = await asyncio.gather(*(outcome(world, number, case) for number, case in enumerate(CASES)))
    wrong = {case["name"]: outcome for case, outcome in zip(CASES, outcomes, strict=True) if outcome}
    assert wrong == {}
