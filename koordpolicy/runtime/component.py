"""What every component needs around it, put together once: cluster, policies, reports, server, logs."""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from koordpolicy import __version__
from koordpolicy.graph.layers import PackFinder
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.event_correlator import EventLimits
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.read_only import ReadOnlyCluster
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.runtime.apiserver import GRACE, ServerSight, follow
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.decision_file import MOST_BYTES, open_sink
from koordpolicy.runtime.decisions import DecisionCounts, DecisionLog
from koordpolicy.runtime.health import health_routes
from koordpolicy.runtime.http import Route
from koordpolicy.runtime.http.authentication import Reviews
from koordpolicy.runtime.http.reviews import ClusterReviews
from koordpolicy.runtime.http.serving import Endpoint, serve
from koordpolicy.runtime.leader import own_identity
from koordpolicy.runtime.leadership import Leadership
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.compiling import Prepare, Scrutiny
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.gating import Gate
from koordpolicy.runtime.policies.lastgood import LastGood, kept_above
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.policies.objects import ClusterSource
from koordpolicy.runtime.policies.packs import BARE, find_pack
from koordpolicy.runtime.policies.revisions import RejectedRevision
from koordpolicy.runtime.process import CannotStart, Process, Tasks
from koordpolicy.runtime.reports.presence import Presence, RollCall
from koordpolicy.runtime.reports.reporter import Reporter
from koordpolicy.runtime.reports.revision_objects import RevisionObjects, Who
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.runtime.reports.unreadable import unreadable_objects, unreadable_status
from koordpolicy.runtime.requests import RequestCounts
from koordpolicy.runtime.rollout.process import cluster_gate
from koordpolicy.runtime.tracing import Tracing, TracingSettings
from koordpolicy.source.revision import Source

if TYPE_CHECKING:  # what only some processes need they import when they do
    from koordpolicy.runtime.policies.config_source import ConfigSource
    from koordpolicy.runtime.reports.slo_config import SLOConfigReport
    from koordpolicy.runtime.trial.client import Trials
    from koordpolicy.source.git.sync import GitSync, SyncSettings

LOG: Final = logging.getLogger(__name__)

NAMESPACE: Final = "koordpolicy-system"
_FAREWELL: Final = 3.0
"""Seconds in which our entries are taken back and the last events written, at the stop."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator sets for a process, by flags.

    Policies come from the repository, or else from the objects in the cluster, or else from the path, or else they
    are the built-in pack. `webhook_secret` is a file with what messages of the repository's host must prove to know.
    `instance` tells replicas apart; `node` is the node that the process belongs to.
    """

    policies: str = ""
    policies_from_cluster: bool = False
    repository: "SyncSettings | None" = None
    """A repository that this process keeps in step itself, instead of a path."""
    webhook_secret: Path | None = None
    state_directory: str = ""
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = NAMESPACE
    http: Endpoint | None = None
    """Where health, metrics and status are served; None serves nothing."""
    leader_elect: bool = True
    decision_log: str = ""
    decision_log_every: int = 100
    decision_log_size: int = MOST_BYTES
    """Bytes after which the file is put aside; 0 for never."""
    policy_tests: bool = True
    trials: "Trials | None" = None
    """Where revisions are tried before this process takes them."""
    max_cost: int = DEFAULT_BUDGET
    """Units that a decision may cost at most, whatever a bundle says."""
    instance: str = field(default_factory=lambda: os.uname().nodename)
    node: str = ""
    slo_config_namespace: str = ""
    """Where the ConfigMap slo-controller-config of Koordinator is followed; "" follows none."""
    tracing: TracingSettings | None = None
    """Where spans of pods go; None makes none."""
    unready_after: float = GRACE
    """Seconds without a good answer of the API server after which the process says that it is not ready."""

    @property
    def follows_policies(self) -> bool:
        """Whether policies come from anywhere but from the product itself."""
        return bool(
            self.policies or self.policies_from_cluster or self.repository or self.slo_config_namespace
        )

    @property
    def as_shipped(self) -> bool:
        """Whether all that decides ships with the product and has been tried by the usual budget."""
        return not self.follows_policies and self.max_cost >= DEFAULT_BUDGET


@dataclass(frozen=True, slots=True)
class ComponentOptions:
    """How a component differs from others.

    `prepare` makes graphs ready for it, see `LivePolicies`. `leads_rollouts` says that its leader advances rollouts and
    says how revisions are, for all components; one does. Where none of that component is there, the first process of
    the others does (`Reporter.stands_in`). `events` is for components that have more to tell than usual. `source` makes a
    source of policies of the component's own, of the cluster and the waits of watches, in place of what settings say; `packs`
    finds what bundles extend; `checked` says that whoever gives revisions has checked and tested them. `gate` makes what holds
    revisions back, where rollouts do not go on here. `routes` are served beside health and metrics.

    Of a component that is `one_per_node` there are thousands: none renews a lease or writes into an object that all of
    them write. It says on its node's own objects which policies it runs.

    Without `reports` nobody is told that this process is there, or what it makes of its policies: it does something once, by
    files that may be anybody's. Without `writes` it writes nothing at all into the cluster, and does not report either.
    """

    prepare: Prepare | None = None
    leads_rollouts: bool = False
    events: EventLimits | None = None
    one_per_node: bool = False
    reports: bool = True
    writes: bool = True
    source: Callable[[Cluster, Backoff], Source] | None = None
    packs: PackFinder = find_pack
    checked: bool = False
    gate: Callable[[Metrics], Gate] | None = None
    routes: tuple[Route, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether the process writes into the objects of all which policies it runs."""
        return self.reports and self.writes and not self.one_per_node


USUAL: Final = ComponentOptions()


@dataclass(frozen=True, slots=True)
class RunningComponent:
    """What a component works with while it runs. `source` is there where policies are objects in the cluster."""

    process: Process
    cluster: Cluster
    reviews: Reviews
    live: LivePolicies
    source: ClusterSource | None
    leadership: Leadership
    recorder: Recorder
    counts: DecisionCounts
    log: DecisionLog | None
    unreadable: UnreadableObjects
    troubles: Troubles
    sight: ServerSight
    trials: "Trials | None" = None
    max_cost: int = DEFAULT_BUDGET
    slo_config: "ConfigSource | None" = None
    """What follows a ConfigMap slo-controller-config, where one is followed."""
    tracing: Tracing | None = None

    def revision_of(self, digest: str) -> str:
        """What people call the revision of a graph: the active one or the candidate; else the digest itself."""
        for known in (self.live.active, self.live.candidate):
            if known is not None and known.graph.digest == digest:
                return known.revision.name
        return digest

    @staticmethod
    def backoff(*, initial: float = 0.8, longest: float = 30.0) -> Backoff:
        """Waits that differ from those of others."""
        return Backoff(random.random, initial=initial, longest=longest)

    def watch_backoff(self) -> Backoff:
        """Waits of watches: over as soon as a server that was away answers again."""
        return _watch_backoff(self.sight)

    @staticmethod
    def draw(count: int) -> int:
        """A number from 0 to `count` - 1, each as likely as the others."""
        return random.randrange(count)  # noqa: S311  # ties, no secrets


@asynccontextmanager
async def running_component(
    process: Process, settings: Settings, options: ComponentOptions = USUAL
) -> AsyncIterator[RunningComponent]:
    """Put everything together, run what runs beside, and take it down in order. Raises `CannotStart`."""
    metrics = process.metrics
    process.readiness.wait_for("policies", "no revision is active yet")
    who = Who(process.component, settings.instance, settings.node)
    async with AsyncExitStack() as stack:
        sight = ServerSight(RequestCounts(metrics), monotonic)
        connected = await stack.enter_async_context(_cluster(process, settings, sight))
        cluster: Cluster = connected if options.writes else ReadOnlyCluster(connected)
        leadership = Leadership(
            cluster,
            settings.namespace,
            own_identity(settings.instance),
            metrics,
            elect=settings.leader_elect,
        )

        def leads() -> bool:
            return leadership.leads

        def leads_rollouts() -> bool:
            return options.leads_rollouts and leadership.leads

        def stands_in() -> bool:
            return options.is_shown and not options.leads_rollouts and reporter.stands_in

        recorder = Recorder(
            cluster,
            component=f"koordpolicy-{process.component}",
            instance=settings.instance,
            now_ns=now_ns,
            backoff=RunningComponent.backoff(),
            limits=options.events,
            writes=options.writes,
        )
        metrics.count_elsewhere("koordpolicy_events_dropped_total", recorder)
        sync = None if settings.repository is None else _sync(settings.repository)
        objects: ClusterSource | None = None
        if options.source is not None:
            source = options.source(cluster, _watch_backoff(sight))
        else:
            source, objects = _source(settings, cluster, sync, sight)
        store = LastGood(settings.state_directory) if settings.state_directory else None
        followed: SLOConfigReport | None = None
        slo_config: ConfigSource | None = None
        if namespace := settings.slo_config_namespace:
            followed = _config_report(namespace, metrics, recorder, leads)
            source = slo_config = _followed_config(
                settings, source, cluster, _watch_backoff(sight), followed, store
            )
            process.status.add(followed.status)
        live = LivePolicies(
            source,
            metrics,
            store=store,
            gate=options.gate(metrics)
            if options.gate is not None
            else cluster_gate(
                cluster,
                metrics,
                recorder,
                f"{process.component}-{settings.instance}",
                node=settings.node,
                leads=leads_rollouts,
                stands_in=stands_in,
                publishes=options.is_shown,
            ),
            options=Options(
                options.packs,
                prepare=options.prepare,
                scrutiny=_scrutiny(settings, options),
                quiet=True,
                trials=settings.trials,
                max_cost=settings.max_cost,
                # Where revisions are tried beforehand, that is where the pack is compiled.
                kept=options.packs is find_pack and settings.trials is None,
            ),
        )
        live.subscribe(lambda _: process.readiness.reached("policies"))
        counts = DecisionCounts(metrics)
        log = _log(process, settings, stack)
        reviews = ClusterReviews(connected)  # what is asked there is kept nowhere
        routes = (
            *health_routes(process, live),
            *_sync_routes(process, settings, sync),
            *options.routes,
        )
        if settings.http is not None:
            server = await serve(stack, settings.http, routes, metrics, reviews=reviews)
            process.note_address(settings.http.host, server.port)
        presence = Presence(
            cluster,
            settings.namespace,
            who.member,
            leadership.identity,
            jitter=random.random,
            wall_ns=now_ns,
            source_trouble=lambda: "" if live.trouble is None else f"{live.origin}: {live.trouble.message}",
        )
        reporter = Reporter(
            RevisionObjects(cluster, metrics, now_ns),
            live,
            who,
            RunningComponent.backoff(),
            RollCall(cluster, settings.namespace, clock=monotonic),
            leads=leads_rollouts,
            recorder=recorder,
        )
        reporter.put_off = lambda: sight.put_off(settings.unready_after)
        unreadable = unreadable_objects(metrics, recorder, leads)
        troubles = Troubles(metrics, live, recorder, leads=leads, now=now_ns)
        process.status.add(
            lambda: {
                "leader": leadership.status(),
                **_put_off(sight, settings.unready_after),
                **unreadable_status(unreadable),
            }
        )
        process.status.add(troubles.status)
        leadership.subscribe(lambda _: reporter.again())
        leadership.subscribe(lambda leading: unreadable.again() if leading else None)
        if followed is not None:
            live.subscribe_rejected(followed.rejected)
            leadership.subscribe(followed.again)
        tasks = await stack.enter_async_context(Tasks())
        tasks.start("api server", follow(sight, process.readiness, settings.unready_after, troubles.put_off))
        tasks.start("events", recorder.run())
        tasks.start("conditions", troubles.follow())
        tasks.start(
            "policies", live.run() if options.source or settings.follows_policies else _run_unchanging(live)
        )
        if options.is_shown:
            await stack.enter_async_context(_told_of(tasks, reporter, presence, recorder))
        else:
            stack.push_async_callback(_farewell, recorder.flush)
        yield RunningComponent(
            process,
            cluster,
            reviews,
            live,
            objects,
            leadership,
            recorder,
            counts,
            log,
            unreadable,
            troubles,
            sight,
            settings.trials,
            settings.max_cost,
            slo_config,
            await _tracing(process, settings, stack),
        )


async def _tracing(process: Process, settings: Settings, stack: AsyncExitStack) -> Tracing | None:
    """What makes spans; the last ones are sent when the stack ends. Raises `CannotStart`."""
    if settings.tracing is None:
        return None
    try:
        tracing = await asyncio.to_thread(
            Tracing, settings.tracing, process.component, settings.instance, __version__
        )
    except ImportError as problem:
        raise CannotStart(
            f"--tracing-endpoint needs OpenTelemetry: pip install 'koordpolicy[tracing]' ({problem})"
        ) from None
    stack.push_async_callback(asyncio.to_thread, tracing.close)
    return tracing


def _put_off(sight: ServerSight, grace: float) -> dict[str, tuple[str, ...]]:
    """For `/statusz`: requests of which the API server takes none."""
    found = sight.put_off(grace)
    return {"putOffByAPIServer": found} if found else {}


@asynccontextmanager
async def _told_of(
    tasks: Tasks, reporter: Reporter, presence: Presence, recorder: Recorder
) -> AsyncIterator[None]:
    """The cluster is told of the process while it runs, and no more once it ends, also where it cannot go on as it finds."""

    async def take_back() -> None:
        await reporter.withdraw()
        await presence.withdraw()
        await recorder.flush()

    told = [tasks.start("presence", presence.run()), tasks.start("report", reporter.run())]
    try:
        yield
    finally:
        for task in told:
            task.cancel()
        await asyncio.wait(told)
        await _farewell(take_back)


async def _farewell(words: Callable[[], Awaitable[None]]) -> None:
    try:
        async with asyncio.timeout(_FAREWELL):
            await words()
    except (KubeError, TimeoutError) as error:
        # Whoever speaks for all sees that we are gone.
        LOG.info("what this process reported was not taken back: %s", error)


@asynccontextmanager
async def _cluster(process: Process, settings: Settings, sight: ServerSight) -> AsyncIterator[Cluster]:
    try:
        connection = await asyncio.to_thread(
            Connection.load, settings.kubeconfig, settings.context, os.environ
        )
    except ConfigurationError as error:
        raise CannotStart(f"no cluster: {error}") from None
    async with connect(
        connection, jitter=random.random, component=process.component, observer=sight.add
    ) as cluster:
        yield cluster


def _scrutiny(settings: Settings, options: ComponentOptions) -> Scrutiny:
    if options.checked or (settings.as_shipped and options.source is None):
        return Scrutiny.NONE
    return Scrutiny.TESTS if settings.policy_tests else Scrutiny.CHECKS


async def _run_unchanging(live: LivePolicies) -> None:
    """Run policies that no commit ever replaces. Raises CannotStart where they are rejected."""
    found: asyncio.Future[RejectedRevision] = asyncio.get_running_loop().create_future()
    live.subscribe_rejected(lambda rejected: None if found.done() else found.set_result(rejected))
    async with asyncio.TaskGroup() as group:
        group.create_task(live.run())
        rejected = await found
        raise CannotStart(
            f"the {live.origin}: {rejected.message}; name what it has, or follow policies that have it"
        )


def _sync(repository: "SyncSettings") -> "GitSync":
    from koordpolicy.runtime.syncing import make_sync  # noqa: PLC0415  # most repositories are kept in step by others

    return make_sync(repository)


def _sync_routes(process: Process, settings: Settings, sync: "GitSync | None") -> tuple[Route, ...]:
    """Show how a repository is kept in step, and listen to its host where messages can be told from others'."""
    if sync is None:
        return ()
    from koordpolicy.runtime.syncing import hook_route, observe, status_of  # noqa: PLC0415

    process.status.add(lambda: status_of(sync))
    observe(sync, process.metrics)
    if settings.webhook_secret is None:
        return ()
    return (hook_route(sync, process.metrics, settings.webhook_secret),)


def _source(
    settings: Settings, cluster: Cluster, sync: "GitSync | None", sight: ServerSight
) -> tuple[Source, ClusterSource | None]:
    if sync is not None:
        from koordpolicy.source.git.repository import RepositorySource  # noqa: PLC0415

        return RepositorySource(sync), None
    if settings.policies_from_cluster:
        objects = ClusterSource(cluster, _watch_backoff(sight))
        return objects, objects
    if settings.policies:
        from koordpolicy.source.paths import open_source  # noqa: PLC0415  # what watches files is large

        return open_source(settings.policies), None
    path, text = BARE
    return FixedSource("built-in pack", {path: text}), None


def _config_report(
    namespace: str, metrics: Metrics, recorder: Recorder, leads: Callable[[], bool]
) -> "SLOConfigReport":
    from koordpolicy.runtime.reports.slo_config import SLOConfigReport  # noqa: PLC0415  # few follow one

    return SLOConfigReport(namespace, metrics, recorder, leads)


def _followed_config(
    settings: Settings,
    source: Source,
    cluster: Cluster,
    backoff: Backoff,
    report: "SLOConfigReport",
    store: LastGood | None,
) -> "ConfigSource":
    """What a ConfigMap slo-controller-config says, above a source; told of by a report."""
    from koordpolicy.runtime.policies.config_source import ConfigSource  # noqa: PLC0415
    from koordpolicy.runtime.policies.proposing import checked_by  # noqa: PLC0415

    return ConfigSource(
        source,
        cluster,
        settings.slo_config_namespace,
        backoff,
        check=checked_by(settings.trials, settings.max_cost),
        told=report.tell,
        before=kept_above(store),
    )


def _watch_backoff(sight: ServerSight) -> Backoff:
    return Backoff(random.random, sight.sleep, longest=15.0)


def _log(process: Process, settings: Settings, stack: AsyncExitStack) -> DecisionLog | None:
    if not settings.decision_log:
        return None
    try:
        out = open_sink(settings.decision_log, settings.decision_log_size)
    except OSError as error:
        raise CannotStart(f"the decision log cannot be opened: {error}") from None
    log = DecisionLog(out, process.metrics, process.component, every=settings.decision_log_every)
    stack.callback(log.close)
    return log


def state_directory_problem(path: str) -> str:
    """Why a state directory cannot be used, "" when it can."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{path} cannot be made: {error.strerror}"
    return "" if os.access(path, os.W_OK) else f"{path} cannot be written"
