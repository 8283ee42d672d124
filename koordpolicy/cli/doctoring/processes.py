"""Our own processes as their leases tell: who is there, who leads, who was left behind."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination
from koordpolicy.cli.rollouts.text import span
from koordpolicy.cli.statuses.found import FoundProcess, cluster_status
from koordpolicy.kube import resources
from koordpolicy.runtime.reports.presence import TERMS

_GOOD_FOR = int(TERMS.duration * 10**9)


async def leads(examination: Examination, component: str) -> bool:
    """Whether one of a component's processes holds its leader's lease and still renews its own. Raises KubeError."""
    now = examination.now()
    found = cluster_status({resources.LEASES.plural: await examination.all(resources.LEASES)}, now)
    return any(one.component == component and one.leads and not _late(one, now) for one in found.processes)


async def processes(examination: Examination) -> Iterable[ClusterCheck]:
    """Whether each component is there, has one leader, and can take the newest revision."""
    found = cluster_status(
        {one.plural: await examination.all(one) for one in (resources.LEASES, resources.POLICY_REVISIONS)},
        examination.now(),
    )
    by_component: dict[str, list[FoundProcess]] = defaultdict(list)
    for one in found.processes:
        by_component[one.component].append(one)
    if not by_component:
        return [
            ClusterCheck(
                "processes",
                CheckOutcome.FAILED,
                "none holds a Lease `koordpolicy-instance-*`",
                "apply deploy/ or install the chart; processes with `--no-leader-elect` hold none",
            )
        ]
    now = examination.now()
    return [check for name in sorted(by_component) for check in _component(name, by_component[name], now)]


def _late(one: FoundProcess, now: int) -> bool:
    return one.renewed is not None and now - one.renewed > _GOOD_FOR


def _component(name: str, found: Sequence[FoundProcess], now: int) -> Iterator[ClusterCheck]:
    late = [one for one in found if _late(one, now)]
    there = len(found) - len(late)
    leaders = [one.instance for one in found if one.leads and one not in late]
    if there:
        led = f", {', '.join(leaders)} leads" if leaders else ", none leads"
        yield ClusterCheck(
            name, CheckOutcome.GOOD if leaders or name in _LEADERLESS else CheckOutcome.WARNING,
            f"{there} there" + ("" if name in _LEADERLESS else led),
        )  # fmt: skip
    for one in late:
        assert one.renewed is not None
        yield ClusterCheck(
            name,
            CheckOutcome.WARNING if there else CheckOutcome.FAILED,
            f"{one.instance} renewed its lease last {span(now - one.renewed)} ago: it is gone, or cannot write",
            "look at its pod and its log",
        )
    for one in found:
        if one.rejects:
            yield ClusterCheck(
                name,
                CheckOutcome.WARNING,
                f"{one.instance} cannot take revision {one.rejects[:12]}",
                "`koordpolicy status` shows why",
            )


_LEADERLESS = frozenset({"agent", "front"})
"""Each of them works for itself."""
