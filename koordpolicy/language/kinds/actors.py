"""Who acts on each field of each kind: what runs today, and what is awaited.

`check` tells of fields that nothing in a cluster acts on yet, and the manual shows who does. To add a field, add it here, with
its actor; tests see to it that the table is whole, and that what it says of components is so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from koordpolicy.language.facts.table import Component, Components


class Part(StrEnum):
    """A part of the program that exists: a process in a cluster, or a command."""

    COMPILER = "compiler"
    """What reads policies, in every command and process."""
    TESTS = "test"
    PROOFS = "prove"
    ROLLOUTS = "rollouts"
    """What lets revisions go live, in every process."""
    MANAGER = "manager"
    SCHEDULER = "scheduler"
    AGENT = "agent"
    DESCHEDULER = "descheduler"
    YARN_OPERATOR = "yarn-operator"
    SIMULATOR = "simulate"


LIVE: Final = frozenset(Part) - {Part.SIMULATOR}
"""Those that decide about a real cluster."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The `parts` that act on a field, and the component that will in a cluster where none of them does, else empty."""

    parts: frozenset[Part]
    awaited: str = ""

    @property
    def words(self) -> str:
        """For people: `scheduler`, `simulate; later agent`."""
        now = ", ".join(sorted(self.parts))
        later = f"later {self.awaited}" if self.awaited else ""
        return "; ".join(part for part in (now, later) if part)


def _by(*parts: Part, awaited: str = "") -> Actor:
    return Actor(frozenset(parts), awaited)


_COMPILED: Final = _by(Part.COMPILER)
_TESTED: Final = _by(Part.TESTS)
_PROVED: Final = _by(Part.PROOFS)
_ROLLED: Final = _by(Part.ROLLOUTS)
_MANAGED: Final = _by(Part.MANAGER, Part.SIMULATOR)
_SCHEDULED: Final = _by(Part.SCHEDULER, Part.SIMULATOR)
_BOTH: Final = _by(Part.MANAGER, Part.SCHEDULER, Part.SIMULATOR)
_SUPPRESSED: Final = _by(Part.AGENT, Part.SIMULATOR)
_ON_NODES: Final = _by(Part.MANAGER, Part.AGENT)
"""The agent carries it out; the manager writes it into NodeSLO objects for agents that are not ours."""
_ON_NODES_ALL: Final = _by(Part.MANAGER, Part.AGENT, Part.SIMULATOR)
"""The same, and agents in simulations that have some."""
_BY_AGENT: Final = _by(Part.AGENT)
_RENDERED: Final = _by(Part.MANAGER)
"""What the manager writes into NodeSLO objects, for agents that are not ours."""
_ADMITTED: Final = _by(Part.MANAGER, Part.SIMULATOR)
"""By the webhooks of `koordpolicy manager --webhook`."""

_SELECTOR: Final = "matchLabels matchExpressions matchExpressions[].key matchExpressions[].operator matchExpressions[].values"
_MATCH: Final = " ".join(
    ["match", "match.condition"]
    + [
        f"match.{of}{'.' if field else ''}{field}"
        for of in ("nodes", "namespaces", "pods")
        for field in ("", *_SELECTOR.split())
    ]
)
_RULES: Final = f"{_MATCH} precedence parameters variables variables[].name variables[].expression variables[].description"
"""Fields that every kind with rules has: the compiler makes of them when a rule decides, and what it says."""

_TABLE: Final[tuple[tuple[str, Actor, str], ...]] = (
    (
        "PolicyBundle",
        _COMPILED,
        (
            "extends include exclude budgets budgets.costPerDecision tests tests.required tests.minimumCoverage exceptions "
            "exceptions.warnDays"
        ),
    ),
    ("PolicyBundle", _ADMITTED, "budgets.containersPerPod budgets.containersPerReview"),
    (
        "Library",
        _COMPILED,
        (
            "constants functions functions[].name functions[].parameters functions[].parameters[].name "
            "functions[].parameters[].type functions[].result functions[].expression functions[].description"
        ),
    ),
    ("QoSClass", _COMPILED, "precedence permittedBands description"),
    ("QoSClass", _BOTH, "value kubernetes defaultBand"),
    ("QoSClass", _SCHEDULED, "wholeCPUs"),
    ("QoSClass", _BY_AGENT, "cpuBinding protectionOrder"),
    ("PriorityBand", _COMPILED, "precedence gapBelow description"),
    ("PriorityBand", _BOTH, "range range.from range.to priorityClass priorityClass.name"),
    ("PriorityBand", _BOTH, "resources resources.mode resources.names"),
    ("PriorityBand", _MANAGED, "default"),
    (
        "PriorityBand",
        _by(Part.MANAGER),
        "priorityClass.value priorityClass.preemptionPolicy priorityClass.kept",
    ),
    ("PriorityBand", _ADMITTED, "resources.announced"),
    ("ColocationProfile", _COMPILED, _RULES),
    (
        "ColocationProfile",
        _ADMITTED,
        (
            "enabled probability sampling qosClass priorityClassName band subPriority schedulerName labels annotations "
            "copyLabels copyAnnotations labelSuffixes patch resourceTranslation failurePolicy timeout"
        ),
    ),
    ("ColocationProfile", _by(Part.MANAGER), "reservations"),
    ("ProfileReconciliation", _COMPILED, _RULES),
    ("ProfileReconciliation", _by(Part.MANAGER), "enabled interval againAfter mostPerSecond burst"),
    ("AdmissionRule", _COMPILED, _RULES),
    (
        "AdmissionRule",
        _ADMITTED,
        "enabled resource operations require reason message enforcement order failurePolicy timeout",
    ),
    ("QuotaTree", _COMPILED, _RULES),
    (
        "QuotaTree",
        _ADMITTED,
        "defaults defaults.parent defaults.tree defaults.sharedWeight exempt",
    ),
    ("QuotaTree", _BOTH, "quotaOfPod fallback"),
    (
        "QuotaTree",
        _SCHEDULED,
        (
            "quotas quotas[].name quotas[].enabled quotas[].parent quotas[].tree quotas[].min quotas[].max quotas[].weight "
            "quotas[].lends quotas[].namespaces sharing sharing.tree sharing.min sharing.max sharing.weight sharing.lends "
            "sharing.scales sharing.guarantees scheduling scheduling.enabled scheduling.overhead scheduling.terminating "
            "scheduling.preemptible scheduling.limit scheduling.parents scheduling.preempts scheduling.ofParents"
        ),
    ),
    (
        "QuotaTree",
        _by(Part.SCHEDULER),
        (
            "revocation revocation.enabled revocation.after revocation.every revocation.spared revocation.order "
            "reporting reporting.enabled reporting.every builtin builtin.created builtin.namespace builtin.retryAfter"
        ),
    ),
    (
        "QuotaTree",
        _MANAGED,
        "admission admission.enabled admission.operations admission.tracked admission.request admission.limit",
    ),
    (
        "QuotaTree",
        _by(Part.MANAGER),
        (
            "nodeAffinity admission.workers admission.timeout admission.retries admission.retryJitter admission.longestJitter "
            "admission.readAgain"
        ),
    ),
    ("QuotaProfile", _COMPILED, _RULES),
    (
        "QuotaProfile",
        _by(Part.MANAGER),
        "enabled tree unschedulable ratio keys min max interval retryAfter",
    ),
    ("Recommendation", _COMPILED, _RULES),
    (
        "Recommendation",
        _RENDERED,
        " ".join(
            [
                "enabled counted history history.weight history.confidentAfter history.forgetAfter history.containers",
                "checkpoint checkpoint.interval checkpoint.mostPerMinute",
                "publish publish.interval publish.whenChangedBy publish.atLeastEvery",
                *(
                    f"{of} {of}.buckets {of}.buckets.first {of}.buckets.growth {of}.buckets.most {of}.halfLife {of}.share "
                    f"{of}.lower {of}.target {of}.upper {of}.margin {of}.minimum {of}.maximum"
                    for of in ("cpu", "memory")
                ),
            ]
        ),
    ),
    ("CPUTopology", _COMPILED, _RULES),
    (
        "CPUTopology",
        _SCHEDULED,
        (
            "pods pods.owns pods.knownNodesOnly pods.binding pods.required pods.exclusive pods.alignment pods.apart nodes "
            "nodes.binding nodes.alignment nodes.strategy nodes.split nodes.reserved nodes.amplification scoring scoring.strategy scoring.weights"
        ),
    ),
    ("ReservationPolicy", _COMPILED, _RULES),
    (
        "ReservationPolicy",
        _SCHEDULED,
        (
            "pods pods.priority pods.schedulerName pods.preemptionPolicy matching matching.once matching.allows "
            "matching.mostOwners choice choice.order choice.preferred choice.strategy choice.weights choice.otherWeight "
            "preAllocation preAllocation.clusterMode preAllocation.clusterLabel preAllocation.order"
        ),
    ),
    (
        "ReservationPolicy",
        _by(Part.SCHEDULER),
        (
            "status status.every status.attempts status.workers removal removal.enabled removal.every removal.after "
            "removal.orphans removal.clearsPods"
        ),
    ),
    ("DeviceSharing", _COMPILED, _RULES),
    (
        "DeviceSharing",
        _ADMITTED,
        "requests requests.enabled requests.resources requests.expand requests.derive",
    ),
    (
        "DeviceSharing",
        _SCHEDULED,
        (
            "scheduling scheduling.combinations scheduling.converts scheduling.percents scheduling.counter scheduling.measured "
            "scheduling.sized scheduling.atMost scheduling.placement scheduling.order scheduling.partitionSizes "
            "scheduling.leftover scheduling.bestPartitionsFirst scheduling.usualPods scheduling.fragmentationScale "
            "scheduling.imbalance scheduling.score scheduling.zoned scheduling.zoneScore scheduling.annotations scheduling.templated scheduling.templates "
            "scheduling.isolationLabel scheduling.unsharedModels"
        ),
    ),
    ("Overcommit", _COMPILED, _RULES),
    (
        "Overcommit",
        _MANAGED,
        (
            "resource enabled cpu memory zone zone.cpu zone.memory onMissing onMissing.after onMissing.action abnormal "
            "abnormal.when abnormal.after abnormal.wellAfter abnormal.offers publish "
            "publish.whenChangedBy publish.atLeastEvery publish.normalizeCPU publish.deductThirdParty"
        ),
    ),
    ("MetricCollection", _COMPILED, _RULES),
    (
        "MetricCollection",
        _by(Part.MANAGER),
        "enabled summary summary.every summary.silentAfter summary.mostNamed",
    ),
    ("MetricCollection", _by(Part.MANAGER, Part.AGENT), "every averagesOver percentilesOver memory"),
    ("MetricCollection", _SUPPRESSED, "interval systemInputsWithin mostPods"),
    (
        "MetricCollection",
        _by(Part.AGENT),
        (
            "pods pods.every pods.timeout pods.noticeWithin pods.staleAfter "
            "pressure pressure.every pressure.always cpi cpi.every cpi.window cpi.always "
            "coldMemory coldMemory.enabled coldMemory.every coldMemory.scanEvery coldMemory.fromBucket "
            "devices devices.gpus devices.rdma devices.every devices.harmlessErrors"
        ),
    ),
    ("DeviceResource", _COMPILED, _RULES),
    ("DeviceResource", _MANAGED, "enabled resources amount withdrawn labels"),
    ("YARNNode", _COMPILED, _RULES),
    (
        "YARNNode",
        _by(Part.YARN_OPERATOR),
        (
            "enabled nodeManager vcore offer offer.cpu offer.memory claim whenChangedBy overCommitTimeout releaseAfter "
            "pace pace.interval pace.timeout"
        ),
    ),
    ("Amplification", _COMPILED, _RULES),
    (
        "Amplification",
        _MANAGED,
        (
            "normalization normalization.enabled normalization.ratio normalization.minimum normalization.maximum "
            "normalization.whenChangedBy resources ratio minimum admission admission.enabled admission.resources"
        ),
    ),
    ("NodeReservation", _COMPILED, _RULES),
    ("NodeReservation", _MANAGED, "enabled cpu memory cpus applyTo"),
    ("CPUSuppress", _COMPILED, _RULES),
    ("CPUSuppress", _by(Part.MANAGER, Part.AGENT, Part.SIMULATOR), "enabled mechanism"),
    (
        "CPUSuppress",
        _SUPPRESSED,
        (
            "target minimum minimumCPUs minimumQuota growth growth.step growth.deadband onMissing "
            "onMissing.after onMissing.action figures"
        ),
    ),
    ("CPUSuppress", _BY_AGENT, "interval"),
    ("CPUEviction", _COMPILED, _RULES),
    (
        "CPUEviction",
        _ON_NODES_ALL,
        (
            "enabled window byPriority byPriority.threshold byPriority.lower byPriority.highestPriority byRequests "
            "byRequests.threshold byRequests.lower byRequests.highestPriority"
        ),
    ),
    # Satisfaction takes a measurement each second: agents in simulations ask for its thresholds, and never evict by it.
    (
        "CPUEviction",
        _ON_NODES,
        "bestEffort bestEffort.threshold bestEffort.upper bestEffort.usage bestEffort.measured",
    ),
    (
        "CPUEviction",
        _SUPPRESSED,
        (
            "cooldown conduct conduct.by conduct.mostAtOnce conduct.mostPerHour conduct.staleAfter conduct.expectedWithin "
            "byPriority.enabled byPriority.candidates byPriority.order byRequests.enabled byRequests.candidates "
            "byRequests.order"
        ),
    ),
    ("CPUEviction", _BY_AGENT, "interval bestEffort.enabled bestEffort.candidates bestEffort.order"),
    ("MemoryEviction", _COMPILED, _RULES),
    (
        "MemoryEviction",
        _ON_NODES_ALL,
        (
            "enabled threshold lower byPriority byPriority.highestPriority byRequests byRequests.threshold byRequests.lower "
            "byRequests.highestPriority"
        ),
    ),
    ("MemoryEviction", _BY_AGENT, "interval"),
    (
        "MemoryEviction",
        _SUPPRESSED,
        (
            "cooldown conduct conduct.by conduct.mostAtOnce conduct.mostPerHour conduct.staleAfter "
            "conduct.expectedWithin bestEffort bestEffort.enabled bestEffort.candidates bestEffort.order byPriority.enabled "
            "byPriority.candidates byPriority.order byRequests.enabled byRequests.candidates byRequests.order"
        ),
    ),
    ("Prediction", _COMPILED, _RULES),
    (
        "Prediction",
        _SUPPRESSED,
        "enabled bands margin coldStart method interval forgetAfter "
        + " ".join(
            f"{of} {of}.buckets {of}.buckets.first {of}.buckets.growth {of}.buckets.most {of}.halfLife {of}.percentile "
            f"{of}.sampled"
            for of in ("cpu", "memory")
        ),
    ),
    ("Prediction", _BY_AGENT, "checkpoint checkpoint.interval"),
    ("CPUBurst", _COMPILED, _RULES),
    (
        "CPUBurst",
        _ON_NODES_ALL,
        "policy burst quota quota.ceiling quota.period sharePool sharePool.threshold",
    ),
    (
        "CPUBurst",
        _SUPPRESSED,
        "eligible quota.spendsFrom quota.savesBelow quota.growth quota.shrinkage sharePool.cooling interval",
    ),
    ("Isolation", _COMPILED, _RULES),
    (
        "Isolation",
        _ON_NODES_ALL,
        "group cpu cpu.enabled cpu.idle memory memory.enabled memory.minimum memory.low memory.throttling memory.killsGroup",
    ),
    (
        "Isolation",
        _ON_NODES,
        (
            "cpu.identity memory.watermark memory.watermarkScale memory.watermarkAdjustment memory.hasPriority "
            "memory.priority memory.pageCache memory.pageCache.enabled memory.pageCache.limit "
            "memory.pageCache.size memory.pageCache.reclaimsAtOnce "
            "network network.enabled network.ingress network.ingress.request network.ingress.limit "
            "network.egress network.egress.request network.egress.limit "
            "cpu.expels cache cache.enabled cache.start cache.end cache.bandwidth disk disk.enabled blocks blocks[].name "
            "blocks[].type blocks[].readIOPS blocks[].writeIOPS blocks[].readBPS blocks[].writeBPS "
            "blocks[].ioWeightPercent blocks[].readLatency blocks[].writeLatency blocks[].readLatencyPercent "
            "blocks[].writeLatencyPercent blocks[].enableUserModel blocks[].modelReadBPS blocks[].modelWriteBPS "
            "blocks[].modelReadSeqIOPS blocks[].modelWriteSeqIOPS blocks[].modelReadRandIOPS blocks[].modelWriteRandIOPS"
        ),
    ),
    ("SystemTuning", _COMPILED, _RULES),
    (
        "SystemTuning",
        _ON_NODES,
        (
            "cpuMechanism networkMechanism networkBandwidth minFreeFactor watermarkScaleFactor reapsMemory groupIdentity "
            "idleSaverWatermark features limitsPageCache"
        ),
    ),
    ("HostApplicationSet", _COMPILED, _RULES),
    (
        "HostApplicationSet",
        _ON_NODES,
        (
            "applications applications[].name applications[].priority applications[].qos applications[].cgroupPath "
            "applications[].cgroupPath.base applications[].cgroupPath.parentDir applications[].cgroupPath.relativePath"
        ),
    ),
    ("ContainerHook", _COMPILED, _RULES),
    (
        "ContainerHook",
        _SUPPRESSED,
        (
            "cpuSpeed writer pod pod.cpuRequest pod.cpuLimit pod.memoryLimit container container.cpuRequest container.cpuLimit "
            "container.memoryLimit container.cpus container.oomScore stages"
        ),
    ),
    (
        "ContainerHook",
        _BY_AGENT,
        "failurePolicy pod.annotations container.environment container.annotations container.unified",
    ),
    ("RuntimeHooks", _COMPILED, _RULES),
    ("RuntimeHooks", _BY_AGENT, "stages failurePolicy"),
    ("Interference", _COMPILED, _RULES),
    ("Interference", _BY_AGENT, "enabled when after reaction share lasts"),
    ("Arbitration", _COMPILED, _RULES),
    ("Arbitration", _SUPPRESSED, "file order rule"),
    ("SchedulingProfile", _COMPILED, _RULES),
    (
        "SchedulingProfile",
        _SCHEDULED,
        (
            "schedulerName queue queue.order queue.initialBackoff queue.maximumBackoff queue.retryAfter queue.tryWhenIdle "
            "queue.confirmWithin estimator estimator.request estimator.holdAfterScheduled estimator.holdAfterInitialized "
            "load load.resources load.prodBands load.prodIncludesSystem load.filter load.filter.aggregation "
            "load.filter.window load.score load.score.aggregation load.score.window filters filters[].name "
            "filters[].enabled filters[].plugin filters[].parameters filters[].match filters[].match.condition "
            "filters[].require filters[].reason scores scores[].name scores[].enabled scores[].weight scores[].plugin "
            "scores[].parameters scores[].match scores[].match.condition scores[].value scores[].normalize ties sampling preferredNodes "
            "preemption preemption.plugin preemption.policy preemption.eligible preemption.importance preemption.order "
            "preemption.search preemption.search.share preemption.search.least preemption.search.most "
            "preemption.lookAhead preemption.respects diagnosis diagnosis.advice diagnosis.evaluations diagnosis.share diagnosis.slice diagnosis.renewAfter "
            "diagnosis.podsPerSecond diagnosis.slowDecision"
        ),
    ),
    ("GangScheduling", _COMPILED, _RULES),
    (
        "GangScheduling",
        _SCHEDULED,
        (
            "gangOfPod declaredBy initialised minimum total mode matchPolicy waitingTime groups mostTogether acrossNamespaces complete satisfied free "
            "rejectsTogether placement queue queue.oneEnters queue.finishesFirst queue.starves network network.enabled "
            "network.mustGather network.mustShare network.preferShare network.multiples network.candidates network.filling network.countsMembers"
        ),
    ),
    (
        "GangScheduling",
        _by(Part.SCHEDULER),
        "phases phases.phase phases.settled phases.workers phases.retryAfter network.statusEvery",
    ),
    (
        "GangScheduling",
        _SCHEDULED,
        (
            "preemption preemption.enabled preemption.eligible preemption.wholeGangs preemption.sparesBudgets preemption.job "
            "preemption.importance"
        ),
    ),
    ("Descheduling", _COMPILED, _RULES),
    (
        "Descheduling",
        _by(Part.DESCHEDULER),
        (
            "enabled interval dryRun nodes leastNodes limits limits.total limits.perNode limits.perNamespace pace pace.perSecond "
            "pace.burst pace.refusedFor migrate conditions conditions[].name conditions[].enabled conditions[].require conditions[].reason strategies "
            "strategies[].name strategies[].enabled strategies[].plugin strategies[].dryRun strategies[].nodes "
            "strategies[].candidates strategies[].order strategies[].release strategies[].fits strategies[].reason strategies[].load "
            "strategies[].nodeOrder strategies[].most strategies[].total strategies[].ended strategies[].constraints strategies[].weights "
            "strategies[].whole strategies[].takes "
            "strategies[].relocating strategies[].relocating.better strategies[].relocating.byMoreThan "
            "strategies[].load.pool strategies[].load.measure strategies[].load.staleAfter strategies[].load.resources "
            "strategies[].load.high strategies[].load.low strategies[].load.prodHigh strategies[].load.prodLow "
            "strategies[].load.deviation strategies[].load.prod strategies[].load.weights strategies[].load.leastTargets "
            "strategies[].load.fitsLoad strategies[].load.anomaly strategies[].load.anomaly.rounds "
            "strategies[].load.anomaly.consecutive "
            "strategies[].load.anomaly.relievedRounds strategies[].load.anomaly.lasts strategies[].load.anomaly.forgottenAfter"
        ),
    ),
    ("Migration", _COMPILED, _RULES),
    (
        "Migration",
        _by(Part.DESCHEDULER),
        (
            "enabled mode reservable ttl evictor graceSeconds retryAfter pace pace.perSecond pace.burst limits limits.total "
            "limits.perNode limits.perNamespace workload workload.migrating workload.unavailable workload.checksReplicas frequency "
            "frequency.workload frequency.workload.period frequency.workload.most frequency.workload.burst frequency.namespace "
            "frequency.namespace.period frequency.namespace.most frequency.namespace.burst arbitration arbitration.interval "
            "arbitration.order arbitration.together arbitration.limited arbitration.conditionsOf kept kept.afterTtl kept.withoutTtl "
            "kept.interval"
        ),
    ),
    ("Rollout", _COMPILED, _RULES),
    (
        "Rollout",
        _ROLLED,
        "kinds steps steps[].name steps[].shadow steps[].shadow.sample steps[].shadow.keep steps[].canary "
        "steps[].canary.nodes steps[].canary.pods steps[].canary.share steps[].hold steps[].untilResumed guards guards[].name guards[].match "
        "guards[].match.condition guards[].require guards[].reason guards[].patience guards[].knownWithin guards[].action every "
        + " ".join(f"steps[].canary.{of}.{field}" for of in ("nodes", "pods") for field in _SELECTOR.split()),
    ),
    ("PolicyException", _COMPILED, f"{_MATCH} precedence owner reason from expires overrides"),
    ("Invariant", _PROVED, "decisions where require raised"),
    (
        "PolicyTest",
        _TESTED,
        "given cases cases[].name cases[].given cases[].parameters cases[].expect cases[].tolerance",
    ),
)


def _rows() -> Iterator[tuple[tuple[str, str], Actor]]:
    for kind, actor, fields in _TABLE:
        for field in fields.split():
            yield (kind, field), actor


ACTORS: Mapping[tuple[str, str], Actor] = MappingProxyType(dict(_rows()))
"""By kind and field; `[]` stands for each element of a list."""


RUNNING: Final = frozenset(
    {
        Component.MANAGER,
        Component.SCHEDULER,
        Component.AGENT,
        Component.DESCHEDULER,
        Component.YARN_OPERATOR,
    }
)
"""The components that there are as processes; the others are awaited."""


def asked_by(components: Components) -> str:
    """Who asks a decision, for people: `scheduler; later agent`."""
    now = ", ".join(sorted(components & RUNNING))
    later = ", ".join(sorted(components - RUNNING))
    return "; ".join(part for part in (now, f"later {later}" if later else "") if part)


def awaited(kind: str) -> Iterator[tuple[str, Actor]]:
    """The fields of a kind that nothing in a cluster acts on yet; of a structure and what stands in it the latter."""
    for (of, field), actor in ACTORS.items():
        if (
            of == kind
            and actor.awaited
            and not any(other.startswith(f"{field}.") for k, other in ACTORS if k == of)
        ):
            yield field, actor
