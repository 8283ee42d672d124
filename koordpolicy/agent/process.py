"""The agent as a process: one on each node, which measures it, keeps its kernel as policies say, and reports."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.audit.route import events_route
from koordpolicy.agent.collectors.devices import DEVICE_SOURCES, DeviceSources
from koordpolicy.agent.explanation import node_explanation
from koordpolicy.agent.explanation_route import ExplanationRoute
from koordpolicy.agent.explanation_text import explanation_text
from koordpolicy.agent.groups_watch import GroupsWatch
from koordpolicy.agent.hooks.nri import NriPlugin
from koordpolicy.agent.hooks.places import HookPlaces
from koordpolicy.agent.hooks.scenes import HookScenes
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.pods import KubeletPods, PodAnswers, PodSource
from koordpolicy.agent.reports.node_topologies import TopologyReporter
from koordpolicy.agent.reports.usage import pods_by_uid
from koordpolicy.agent.shown.agent_metrics import show_metrics, time_request, time_write
from koordpolicy.agent.supply import PodSupply
from koordpolicy.agent.undoing import take_over, undo_journal
from koordpolicy.agent.watch import NodeWatch
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.wording import unanswered
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.kubelet import KubeletAccess, connect_kubelet
from koordpolicy.kube.port import Cluster
from koordpolicy.language.facts.table import Component
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.host_root import HOST_TREES, HostRoot
from koordpolicy.linux.writes.audit import WriteAudit, WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.clock import monotonic_ns, now_ns
from koordpolicy.runtime.component import ComponentOptions, RunningComponent, Settings, running_component
from koordpolicy.runtime.decision_file import open_sink
from koordpolicy.runtime.leader import page_token
from koordpolicy.runtime.policies.held import HeldReach
from koordpolicy.runtime.policies.packs import find_pack
from koordpolicy.runtime.policies.parts import kinds_for, pack_part
from koordpolicy.runtime.policies.published import PublishedSource
from koordpolicy.runtime.process import CannotStart, Process, Tasks
from koordpolicy.runtime.rollout.followed import FollowedGate
from koordpolicy.source.revision import Source

LOG: Final = logging.getLogger(__name__)

NAME: Final = "agent"

DOOR: Final = DoorLimits(
    refresh=60 * NANOSECONDS,
    attempts=3,
    first_delay=NANOSECONDS,
    longest_delay=60 * NANOSECONDS,
    most_files=20_000,
    early=30 * NANOSECONDS,
    absent=10 * NANOSECONDS,
)
_WRITES: Final = 1000
_LOOK: Final = 0.1
_PATIENCE: Final = 60.0
"""Seconds that a single round waits for policies and the node."""
_FAREWELL: Final = 3.0
"""Seconds in which a dry run that ends takes back what the cluster was told of it."""
_TOLD: Final = 10.0
"""Seconds of waiting for them after which that is told, once more when the patience is over."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an operator sets for an agent, by flags.

    Policies come from what a manager publishes (`from_manager`), from the node's NodeSLO object (`from_node_slo`), or as
    for every process. `trees` are where the node's trees are mounted here, `parent` the kubelet's `--cgroup-root`.
    With `once` there is one round of everything, and the end.
    """

    node: str
    pods_from: PodSource = PodSource.KUBELET
    kubelet: KubeletAccess | None = None
    from_manager: bool = False
    from_node_slo: bool = False
    trees: dict[str, Path] = field(default_factory=dict)
    parent: str = ""
    terway: Path | None = None
    """The directory that Terway reads, where it is on the node."""
    devices: DeviceSources = DEVICE_SOURCES
    hooks: HookPlaces | None = None
    """Where runtime proxies ask; None where nobody is to."""
    nri: Path | None = None
    """The socket of NRI; None where the agent is no plugin of it."""
    dry_run: bool = False
    once: bool = False
    audit_file: str = ""
    audit_bytes: int = 16 << 20
    json: bool = False
    shown: Callable[[str], None] = print


async def run_agent(process: Process, settings: Settings, agent: AgentSettings) -> None:
    """Run until the process is told to stop. Raises `CannotStart`."""
    sink = None
    if agent.audit_file:
        try:
            sink = open_sink(agent.audit_file, agent.audit_bytes)
        except OSError as error:
            raise CannotStart(f"the audit log cannot be opened: {error}") from None
    audit = AuditLog(agent.audit_bytes, monotonic_ns, page_token, sink)
    explained = ExplanationRoute()
    reach = HeldReach()
    options = ComponentOptions(
        one_per_node=True,
        source=_source(settings, agent, reach),
        gate=partial(FollowedGate, reach) if agent.from_manager else None,
        packs=pack_part(kinds_for(Component.AGENT)) if agent.from_manager else find_pack,
        checked=agent.from_manager,
        routes=(events_route(audit), explained.route()),
    )
    async with AsyncExitStack() as stack:
        component = await stack.enter_async_context(running_component(process, settings, options))
        kernel = node_kernel(agent, settings.state_directory, time_write(process.metrics))
        if left := take_over(kernel, audit, now_ns()):
            LOG.warning("%d kernel files stay as a killed process has left them, until policies decide", left)
        watch = NodeWatch(component, agent.node)
        answers = PodAnswers(agent.pods_from, began=monotonic_ns())
        peaks = PeakFiles(settings.state_directory) if settings.state_directory else None
        node = NodeAgent(
            component, watch, kernel, answers, audit, dry_run=agent.dry_run, peaks=peaks, terway=agent.terway
        )
        process.status.add(node.status)
        show_metrics(node)
        explained.tell = lambda: _explained(node)
        supply, groups = await _supply(stack, component, node, agent)
        async with Tasks() as tasks:
            watch.start(tasks)
            if await process.before_stop(_begin(node, component, agent)):
                tasks.start("pods", supply.run())
                tasks.start("groups", groups.run())
                if not agent.once:
                    node.start(tasks)
                    start_hooks(tasks, node, agent)
                    await process.stopped()
                elif await process.before_stop(_once(node, agent)):
                    process.stop("one round was wanted")
        if not agent.dry_run:
            await node.stop()
        else:
            await _unmarked(node)


async def _unmarked(node: NodeAgent) -> None:
    """Take back what the cluster was told of a dry run, if it answers soon."""
    try:
        async with asyncio.timeout(_FAREWELL):
            await node.reporter.unmark_dry_run()
    except (KubeError, TimeoutError) as error:
        LOG.warning(
            "status goes on to tell of this dry run, until an agent acts on the node: %s",
            unanswered(error, _FAREWELL),
        )


def node_kernel(
    agent: AgentSettings, state_directory: str = "", heard: Callable[[WriteAudit], None] | None = None
) -> NodeKernel:
    """The kernel of the node, with the door; in a dry run a door that only plans.

    What is to be undone is kept in the state directory, for the process after this one. `heard` is told of each write.
    """
    root = HostRoot({**HOST_TREES, **agent.trees})
    try:
        hierarchy = discover_hierarchy(root)
    except KernelFileError as error:
        raise CannotStart(f"there are no control groups to work on: {error}") from None
    door = KernelDoor(
        root,
        hierarchy,
        monotonic_ns,
        DOOR,
        WriteLog(_WRITES, heard),
        plan_only=agent.dry_run or agent.once,
        journal=undo_journal(state_directory, root),
    )
    return NodeKernel(root, hierarchy, door, agent.parent, agent.devices)


def start_hooks(tasks: Tasks, node: NodeAgent, agent: AgentSettings) -> None:
    """Answer runtimes, as proxies or NRI ask, by this agent's policies and its look at the node."""
    metrics = node.component.process.metrics

    def count(stage: str, result: str) -> None:
        metrics.add("koordpolicy_hook_answers_total", stage=str(stage), result=result)

    scenes = HookScenes(
        node.frame,
        lambda: node.graph,
        lambda: pods_by_uid(node.watch.objects.pods.values()),
        now_ns,
        monotonic_ns,
    )
    if agent.hooks is not None:
        from koordpolicy.agent.hooks.server import HookServing  # noqa: PLC0415  # gRPC takes 9 MiB of every node

        tasks.start("hooks", HookServing(scenes, agent.hooks, count).run())
    if agent.nri is not None:
        tasks.start("nri", NriPlugin(scenes, agent.nri, count).run())


def _explained(node: NodeAgent) -> Mapping[str, Any] | None:
    frame = node.frame()
    return None if frame is None else node_explanation(node, frame)


async def _begin(node: NodeAgent, component: RunningComponent, agent: AgentSettings) -> None:
    """Wait for policies and the node: as long as it takes, or, for one round, a while. Raises `CannotStart`."""
    why, beginning = "", asyncio.create_task(node.begin())
    try:
        for wait in (_TOLD, _PATIENCE - _TOLD):
            await asyncio.wait((beginning,), timeout=wait)
            if beginning.done():
                break
            if component.live.ready.is_set():
                why = f"the API server knows no node {agent.node}, or no policy can be decided for it"
            else:
                why = "; ".join(component.process.readiness.missing.values()) or "no revision is active yet"
            LOG.warning("the agent does nothing yet: %s", why)
        if agent.once and not beginning.done():
            raise CannotStart(f"one round of everything waits {_PATIENCE:.0f} s at most: {why}")
        await beginning
    finally:
        beginning.cancel()


async def _once(node: NodeAgent, agent: AgentSettings) -> None:
    """One round of everything, and what it would do."""
    for _ in range(int(_PATIENCE / _LOOK)):
        if node.answers.heard:
            break
        await asyncio.sleep(_LOOK)
    else:
        troubles = "; ".join(node.answers.trouble.values()) or "nobody answered"
        raise CannotStart(f"the pods of node {agent.node} are not known: {troubles}") from None
    node.decide()
    for _ in range(2):  # a rate takes two counts
        node.collect()
        await asyncio.sleep(node.collection().interval / NANOSECONDS)
    node.collect()
    frame = node.frame()
    assert frame is not None
    await node.carry_out(node.strategies, frame)
    record = node_explanation(node, frame)
    agent.shown(json_text(record, indent=2) if agent.json else explanation_text(record))


def _source(
    settings: Settings, agent: AgentSettings, reach: HeldReach
) -> Callable[[Cluster, Backoff], Source] | None:
    if agent.from_manager:
        return lambda cluster, backoff: PublishedSource(cluster, settings.namespace, backoff, reach=reach)
    if agent.from_node_slo:
        from koordpolicy.runtime.policies.node_slo import NodeSLOSource  # noqa: PLC0415  # with the importer behind it

        return lambda cluster, backoff: NodeSLOSource(cluster, agent.node, backoff)
    return None


async def _supply(
    stack: AsyncExitStack, component: RunningComponent, node: NodeAgent, agent: AgentSettings
) -> tuple[PodSupply, GroupsWatch]:
    kubelet = None
    if agent.kubelet is not None:
        told = time_request(component.process.metrics)
        client = await stack.enter_async_context(connect_kubelet(agent.kubelet, NAME, told))
        node.topology = TopologyReporter(
            component.cluster, lambda: client.configuration(node.collection().pods_timeout / NANOSECONDS)
        )
        kubelet = KubeletPods(client, node.watch.pods, node.answers, node.collection, monotonic_ns)
    supply = PodSupply(node.answers, kubelet, node.watch.pod_informer, node.collection, monotonic_ns)

    def ask() -> None:
        node.doing.look_again()
        if kubelet is not None:
            kubelet.ask_now()

    groups = GroupsWatch(node.kernel, lambda: node.collection().pods_notice_within, ask, node.starts_pods)
    return supply, groups
