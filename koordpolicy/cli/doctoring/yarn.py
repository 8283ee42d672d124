"""A Hadoop YARN beside us: what nodes keep for it, and whether its ResourceManager answers."""

from collections.abc import Iterable, Iterator
from typing import Final

from koordpolicy.algorithms.batch_sharing import BatchAmounts
from koordpolicy.cli.counted import counted
from koordpolicy.cli.doctoring.beside import YARN_RIVAL, installed
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination, name_of, runs
from koordpolicy.cli.rollouts.text import span
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden
from koordpolicy.kube.port import Object
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, THIRD_PARTY_ALLOCATIONS
from koordpolicy.model.third_party import third_party_allocations
from koordpolicy.model.time import parse_time
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.yarn_operator.plans import SCHEDULER
from koordpolicy.yarn_operator.process import NAME
from koordpolicy.yarn_operator.rounds import AWAY, BACK

_SUBJECT: Final = "YARN"
_GIB: Final = 1 << 30


async def yarn(examination: Examination) -> Iterable[ClusterCheck]:
    """What is found of it; ABSENT where nobody shares with it."""
    ours = await installed(examination)
    found = [*_nodes(await examination.all(resources.NODES))]
    told = await _told(examination)
    if not (NAME in ours or found or told):
        return [ClusterCheck(_SUBJECT, CheckOutcome.ABSENT, f"no {NAME} runs, and no node keeps anything for it")]  # fmt: skip
    found += told
    if ours and NAME not in ours and not await _has_rival(examination):
        found.append(
            ClusterCheck(
                _SUBJECT,
                CheckOutcome.WARNING,
                f"no {NAME} runs: what nodes keep for YARN is given back by nobody",
                f"run it again (deploy/beside-yarn), or take `{SCHEDULER}` out of the nodes' {THIRD_PARTY_ALLOCATIONS}",
            )
        )
    return found or [ClusterCheck(_SUBJECT, CheckOutcome.GOOD, "no node keeps anything for it yet")]


async def _has_rival(examination: Examination) -> bool:
    return any(
        name_of(one) == YARN_RIVAL and runs(one) for one in await examination.all(resources.DEPLOYMENTS)
    )


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
    """Whether its ResourceManager answers, by the operator's last Event about it; nothing where there is none."""
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
            "look at the addresses of `--yarn-url`, at `--yarn-user`, and whether one of its ResourceManagers is active",
        )
    ]
