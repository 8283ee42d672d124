"""What the accounts of our components may do, of what they cannot work without."""

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.cli.counted import counted
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination
from koordpolicy.descheduler.process import WATCHED as DESCHEDULER
from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.process import WATCHED as MANAGER
from koordpolicy.scheduler.watched import WATCHED as SCHEDULER
from koordpolicy.yarn_operator.watched import WATCHED as YARN_OPERATOR

_ACCOUNTS: Final[Mapping[str, Iterable[Resource]]] = MappingProxyType(
    {"manager": MANAGER, "scheduler": SCHEDULER, "descheduler": DESCHEDULER, "yarn-operator": YARN_OPERATOR}
)
_WRITES: Final[Mapping[str, tuple[tuple[str, Resource, str], ...]]] = MappingProxyType(
    {
        "manager": (("patch", resources.NODES, "status"), ("patch", resources.POLICY_REVISIONS, "status")),
        "scheduler": (("create", resources.PODS, "binding"), ("patch", resources.PODS, "status")),
        "descheduler": (("create", resources.PODS, "eviction"),),
        "yarn-operator": (("patch", resources.NODES, ""),),
    }
)
"""Verb, resource and subresource of what each is there for."""

_AT_ONCE: Final = 8


async def permissions(examination: Examination) -> Iterable[ClusterCheck]:
    """Asks the API server about each account; one that does not exist is passed over."""
    found = []
    for component, watched in _ACCOUNTS.items():
        account = f"system:serviceaccount:{examination.namespace}:koordpolicy-{component}"
        asked = [(verb, one, "") for one in sorted(watched, key=str) for verb in ("list", "watch")]
        asked += _WRITES[component]
        refused = await _refused(examination, account, asked)
        if len(refused) == len(asked):
            found.append(
                ClusterCheck(
                    "permissions",
                    CheckOutcome.ABSENT,
                    f"account `koordpolicy-{component}` in `{examination.namespace}` may nothing: it is not installed there",
                    "`--namespace` says where to look",
                )
            )
        elif refused:
            found.append(
                ClusterCheck(
                    "permissions",
                    CheckOutcome.FAILED,
                    f"account `koordpolicy-{component}` may not {', '.join(refused[:6])}"
                    + (f" and {len(refused) - 6} more" if len(refused) > 6 else ""),
                    "apply deploy/rbac of this version",
                )
            )
        else:
            found.append(
                ClusterCheck(
                    "permissions",
                    CheckOutcome.GOOD,
                    f"account `koordpolicy-{component}` may do all of {counted(len(asked), 'thing')} asked about",
                )
            )
    return found


async def _refused(
    examination: Examination, account: str, asked: Iterable[tuple[str, Resource, str]]
) -> list[str]:
    """What the account may not do, in words. Raises KubeError."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def may(verb: str, resource: Resource, subresource: str) -> bool:
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "subresource": subresource,
        }
        review: dict[str, Any] = {
            "metadata": {},
            "spec": {
                "user": account,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{examination.namespace}", "system:authenticated"],
                "resourceAttributes": {key: value for key, value in attributes.items() if value},
            }
        }  # fmt: skip
        async with room:
            answer = await examination.cluster.create(resources.SUBJECT_ACCESS_REVIEWS, review)
        return bool((answer.get("status") or {}).get("allowed"))

    wanted = list(asked)
    answers = await asyncio.gather(*(may(*one) for one in wanted))
    return [
        f"{verb} {resource}{f'/{subresource}' if subresource else ''}"
        for (verb, resource, subresource), allowed in zip(wanted, answers, strict=True)
        if not allowed
    ]
