"""A Hadoop YARN beside us: what nodes keep for it, and whether its ResourceManager answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from koordpolicy.algorithms.batch_sharing import BatchAmounts
from koordpolicy.cli.counted import counted
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination, name_of, runs
from koordpolicy.cli.rollouts.text import span
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden
from koordpolicy.kube.port import Object
from koordpolicy.manager.controllers.yarn_node import SCHEDULER
from koordpolicy.manager.yarn_nodes import AWAY, BACK
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, THIRD_PARTY_ALLOCATIONS
from koordpolicy.model.third_party import third_party_allocations
from koordpolicy.model.time import parse_time
from koordpolicy.model.unreadable import Unreadable, readable

_SUBJECT: Final = "YARN"
_FLAG: Final = "--yarn-url"
_RIVAL: Final = "koord-yarn-operator"
_LABELS: Final = {"app.kubernetes.io/part-of": "koordpolicy", "app.kubernetes.io/component": "manager"}
_GIB: Final = 1 << 30


async def yarn(examination: Examination) -> Iterable[ClusterCheck]:
    """What is found of it; ABSENT where nobody shares with it."""
    deployments = await examination.all(resources.DEPLOYMENTS)
    managers = [
        one for one in deployments if runs(one) and _LABELS.items() <= (_metadata(one, "labels")).items()
    ]
    sharing = [one for one in managers if _asks(one)]
    rivals = [one for one in deployments if name_of(one) == _RIVAL and runs(one)]
    found = [*_nodes(await examination.all(resources.NODES))]
    told = await _told(examination)
    if not (sharing or found or told):
        return [ClusterCheck(_SUBJECT, CheckOutcome.ABSENT, f"no manager has `{_FLAG}`, and no node keeps anything for it")]  # fmt: skip
    found += told
    if sharing and rivals:
        found.append(
            ClusterCheck(
                _SUBJECT,
                CheckOutcome.WARNING,
                f"Koordinator's {_RIVAL} runs beside a manager with `{_FLAG}`; both write what nodes offer to YARN",
                "scale one of the two to 0, or take the flag away",
            )
        )
    if managers and not sharing and not rivals and not told:
        found.append(
            ClusterCheck(
                _SUBJECT,
                CheckOutcome.WARNING,
                f"no manager has `{_FLAG}`: what nodes keep for YARN is given back by nobody",
                f"give the manager its flags again, or take `{SCHEDULER}` out of the nodes' {THIRD_PARTY_ALLOCATIONS}",
            )
        )
    return found


def _nodes(listed: Iterable[Object]) -> Iterator[ClusterCheck]:
    """What all nodes keep for YARN, and those that nobody can tell of."""
    kept, count = BatchAmounts(), 0
    for obj in listed:
        node = readable(read_node, obj)
        if not isinstance(node, Node):
            continue  # components tell of nodes that cannot be read
        allocations = readable(third_party_allocations, node.annotations)
        if isinstance(allocations, Unreadable):
            yield ClusterCheck(
                _SUBJECT,
                CheckOutcome.WARNING,
                f"node {node.name}: {allocations.reason}",
                "YARN is offered nothing there until the annotation is mended or removed",
            )
            continue
        mine = [one.resources for one in allocations if one.name == SCHEDULER]
        count += bool(mine)
        for one in mine:
            kept = kept.plus(BatchAmounts(one.get(BATCH_CPU, 0), one.get(BATCH_MEMORY, 0)))
    if count:
        amounts = f"{kept.cpu / 1000:,.1f} cores and {kept.memory / _GIB:,.1f} GiB"
        yield ClusterCheck(
            _SUBJECT, CheckOutcome.GOOD, f"{amounts} are kept for it on {counted(count, 'node')}"
        )


async def _told(examination: Examination) -> list[ClusterCheck]:
    """Whether its ResourceManager answers, by the manager's last Event about it; nothing where there is none."""
    last: tuple[int, str, str] | None = None
    for reason in (AWAY, BACK):
        try:
            listed = await examination.cluster.list(
                resources.EVENTS, namespace=examination.namespace, field_selector=f"reason={reason}"
            )
        except Forbidden as error:
            return [
                ClusterCheck(_SUBJECT, CheckOutcome.UNKNOWN, error.message, "ask as somebody who may read it")
            ]
        for one in listed.items:
            at = readable(parse_time, str(one.get("lastTimestamp") or one.get("eventTime") or ""))
            if isinstance(at, int) and (last is None or at >= last[0]):
                last = (at, reason, str(one.get("message") or ""))
    if last is None:
        return []
    at, reason, message = last
    if reason == BACK:
        return [ClusterCheck(_SUBJECT, CheckOutcome.GOOD, "its ResourceManager answers")]
    since = span(max(examination.now() - at, 0))
    return [
        ClusterCheck(
            _SUBJECT,
            CheckOutcome.FAILED,
            f"its ResourceManager does not answer, told {since} ago: {message}",
            f"look at the addresses of `{_FLAG}`, at `--yarn-user`, and whether one of its ResourceManagers is active",
        )
    ]


def _asks(deployment: Mapping[str, Any]) -> bool:
    """Whether its first container is told where a ResourceManager is."""
    pod = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    return any(
        str(word).startswith(_FLAG) for one in pod.get("containers") or () for word in one.get("args") or ()
    )


def _metadata(obj: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return (obj.get("metadata") or {}).get(key) or {}
