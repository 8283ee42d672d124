"""The API server: its version, its clock, what it serves, and the definitions of kinds that it has."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from koordpolicy.cli.counted import counted
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination, name_of, served
from koordpolicy.kube import resources
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.language.crds.definitions import definitions
from koordpolicy.model.reading import mapping, objects, text
from koordpolicy.model.time import NANOSECONDS, parse_time

_GATED: Final = (
    (
        resources.VALIDATING_POLICIES,
        "AdmissionRules that need no webhook stay with the webhook (`--native-admission` is not there)",
    ),
    (
        resources.MUTATING_POLICIES,
        "ColocationProfiles that need no webhook stay with the webhook",
    ),
    (resources.KUBERNETES_POD_GROUPS, "Kubernetes' own PodGroups are not read; Koordinator's are"),
)
"""What servers have by their version or a feature gate, and what is not done without."""

_SECONDS_APART: Final = 5
"""More than one whole second, by which the server tells its time, and the way there and back."""

_FOREIGN: Final = (
    resources.NODE_METRICS,
    resources.NODE_SLOS,
    resources.CLUSTER_COLOCATION_PROFILES,
    resources.ELASTIC_QUOTA_PROFILES,
    resources.ELASTIC_QUOTAS,
    resources.POD_GROUPS,
    resources.DEVICES,
    resources.RESERVATIONS,
    resources.POD_MIGRATION_JOBS,
    resources.CLUSTER_NETWORK_TOPOLOGIES,
    resources.SCHEDULE_EXPLANATIONS,
    resources.RECOMMENDATIONS,
    resources.NODE_RESOURCE_TOPOLOGIES,
)
"""Kinds of Koordinator and others that components read or write; their definitions may be Koordinator's own."""


async def version(examination: Examination) -> Iterable[ClusterCheck]:
    """What the server calls itself, and which gated resources it serves."""
    said = json.loads(await examination.cluster.raw("/version"))
    found = [
        ClusterCheck(
            "API server", CheckOutcome.GOOD, f"Kubernetes {said.get('gitVersion', 'of an unknown version')}"
        )
    ]
    for resource, without in _GATED:
        if await served(examination, resource):
            found.append(ClusterCheck("API server", CheckOutcome.GOOD, f"serves {resource}"))
        else:
            found.append(
                ClusterCheck("API server", CheckOutcome.ABSENT, f"does not serve {resource}: {without}")
            )
    return found


async def clock(examination: Examination) -> Iterable[ClusterCheck]:
    """The server's clock against ours: it stamps whatever it makes, and dates of leases and reports are compared with it."""
    before = examination.now()
    review = await examination.cluster.create(resources.SELF_SUBJECT_REVIEWS, {"metadata": {}})
    after = examination.now()
    stamped = text(mapping(review, "metadata"), "creationTimestamp", "metadata")
    if not stamped:
        return [ClusterCheck("clock", CheckOutcome.UNKNOWN, "the API server does not tell its time")]
    server = parse_time(stamped)
    # A whole second: it was anything up to one second later.
    apart = max(before - server - NANOSECONDS, server - after, 0) / NANOSECONDS
    if apart > _SECONDS_APART:
        return [
            ClusterCheck(
                "clock",
                CheckOutcome.WARNING,
                f"the API server's clock and this machine's are {apart:.0f} s apart",
                "ages below are wrong by as much; look at NTP on both",
            )
        ]
    return [ClusterCheck("clock", CheckOutcome.GOOD, "the API server's and this machine's agree")]


async def kinds(examination: Examination) -> Iterable[ClusterCheck]:
    """The definitions of our kinds as this version has them, and whether those of others are there."""
    listed = {name_of(one): one for one in await examination.all(resources.CUSTOM_RESOURCE_DEFINITIONS)}
    wanted = {str(one["metadata"]["name"]): one for one in definitions().values()}
    missing = sorted(wanted.keys() - listed.keys())
    other = sorted(
        name for name in wanted.keys() & listed.keys() if _schemas(wanted[name]) != _schemas(listed[name])
    )
    return [
        *_policy_kinds(len(wanted), missing, other),
        *_foreign_kinds(listed),
        *_unestablished(listed, {*wanted, *(f"{one.plural}.{one.group}" for one in _FOREIGN)}),
    ]


def _policy_kinds(total: int, missing: list[str], other: list[str]) -> Iterator[ClusterCheck]:
    if missing:
        yield ClusterCheck(
            "definitions",
            CheckOutcome.FAILED,
            f"{counted(len(missing), 'kind')} of policies {'is' if len(missing) == 1 else 'are'} not defined: {_some(missing)}",
            "apply deploy/crds of this version",
        )
    if other:
        yield ClusterCheck(
            "definitions",
            CheckOutcome.WARNING,
            f"{counted(len(other), 'definition')} {'is' if len(other) == 1 else 'are'} another version's: {_some(other)}",
            "apply deploy/crds of the version that runs, before its processes",
        )
    if not missing and not other:
        yield ClusterCheck(
            "definitions", CheckOutcome.GOOD, f"all {total} kinds of policies, as in this version"
        )


def _foreign_kinds(listed: Mapping[str, Object]) -> Iterator[ClusterCheck]:
    def there(one: Resource) -> bool:
        spec = mapping(listed.get(f"{one.plural}.{one.group}", {}), "spec")
        return any(
            each.get("name") == one.version and each.get("served")
            for each in objects(spec, "versions", "spec")
        )

    missing = sorted(str(one) for one in _FOREIGN if not there(one))
    if missing:
        yield ClusterCheck(
            "definitions",
            CheckOutcome.WARNING,
            f"not defined, or not in the version that is read: {_some(missing)}",
            "what stands in such objects is not read; apply deploy/crds, or Koordinator's own",
        )


def _unestablished(listed: Mapping[str, Object], names: Iterable[str]) -> Iterator[ClusterCheck]:
    for name in sorted(names):
        for one in objects(mapping(listed.get(name, {}), "status"), "conditions", "status"):
            if one.get("type") in ("Established", "NamesAccepted") and one.get("status") == "False":
                yield ClusterCheck("definitions", CheckOutcome.FAILED, f"{name}: {one.get('message')}")


def _schemas(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """What each version says of its objects."""
    return {
        str(one.get("name")): (one.get("served"), one.get("schema"), one.get("subresources"))
        for one in objects(mapping(definition, "spec"), "versions", "spec")
    }


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
