"""KP4xx: documents that are sound by themselves and say something that cannot be meant."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

MEANING: tuple[Code, ...] = (
    Code.written(
        "KP401",
        "bands overlap",
        explanation="Two priority bands claim the same numeric priorities.",
        why="""
            A pod's band decides which resources it consumes, who is suppressed first and who is evicted first. A
            priority that lies in two bands gives no answer.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 5900, to: 6900}
              default: 6000
            """,
        advice="Move a bound. `from` and `to` both belong to the band; the built-in ones are listed in `policies/`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6900}
              default: 6000
            """,
    ),
    Code.written(
        "KP402",
        "gap between bands",
        explanation="""
            Between a band and the next lower one lie priorities that belong to no band, and the upper one does not say
            `gapBelow: Permitted`.
            """,
        why="""
            A pod whose priority falls into the gap has no band: it is treated as a pod from outside the system, and
            neither suppressed nor given overcommitted resources.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6100, to: 6999}
              default: 6500
            """,
        advice="Let the bands meet, or say `gapBelow: Permitted` in the upper one if the gap is meant.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6999}
              default: 6500
            """,
    ),
    Code.written(
        "KP403",
        "default outside its band",
        explanation="A band's default priority does not lie in the band's own range.",
        why="A pod that is put into the band and given the default would be found in another band, or in none.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6999}
              default: 7000
            """,
        advice="Correct the default or the range.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6999}
              default: 6500
            """,
    ),
    Code.written(
        "KP404",
        "Kubernetes QoS claimed by two classes",
        explanation="""
            Two QoS classes both list the same Kubernetes QoS (`Guaranteed`, `Burstable` or `BestEffort`) under
            `kubernetes`.
            """,
        why="A pod without a class label gets the class of its Kubernetes QoS. With two of them it would get either.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: gold}
            spec:
              value: GOLD
              kubernetes: [Guaranteed]
              defaultBand: prod
            """,
        advice="""
            Take it out of one of the two. A class of a pack loses its claim by a document of the same name with another
            list.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: gold}
            spec:
              value: GOLD
              kubernetes: [Guaranteed]
              defaultBand: prod
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: lsr}
            spec: {kubernetes: []}
            """,
    ),
    Code.written(
        "KP405",
        "Kubernetes QoS claimed by no class",
        explanation="One of the three Kubernetes QoS classes stands in the `kubernetes` list of no QoS class.",
        why="A pod of that Kubernetes QoS without a class label would have no class, so no rule about classes covers it.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: lsr}
            spec: {kubernetes: []}
            """,
        advice="Name `Guaranteed`, `Burstable` and `BestEffort` each in exactly one class.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: lsr}
            spec: {kubernetes: [Guaranteed]}
            """,
    ),
    Code.written(
        "KP406",
        "dangerous value",
        explanation="""
            A value is permitted and would harm: best-effort work pushed below what the kernel needs to run it at all, a
            node oversold beyond its capacity, every pod of a node a candidate for eviction.
            """,
        why="Such a value takes effect on every matched node within seconds, and looks like an outage.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(165)}
            """,
        advice="Correct the value; the message names the bound and why it is one.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP407",
        "thresholds in the wrong order",
        explanation="""
            Two thresholds that belong together stand the wrong way round: the level at which something is released is not
            below the one that triggers it, a minimum exceeds its maximum, or a range ends before it begins.
            """,
        why="The mechanism would trigger again at once after it has released, or never end, or never begin.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6999, to: 6000}
              default: 6500
            """,
        advice="Swap or correct them, and leave a distance that the measured value cannot cross by noise.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6999}
              default: 6500
            """,
    ),
    Code.written(
        "KP408",
        "profile without a check of room",
        severity=Severity.WARNING,
        explanation="""
            Nothing that is in force in a SchedulingProfile asks whether a node has room, by the plugin `NodeResourcesFit` or by
            an expression that reads what is free or requested there. A profile for another scheduler name begins empty: it
            inherits no filters, not even those of the pack's profile. In any profile a filter may be turned off, or given
            another plugin, for all pods or for some; the finding then shows such a pod.
            """,
        why="Its pods are placed on nodes that are full, where kubelets refuse them.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: SchedulingProfile
            metadata: {name: trials}
            spec:
              schedulerName: trials
              filters:
                - {name: Taints, plugin: TaintToleration}
            """,
        advice="""
            Name the filters that its pods need, or write the pack's `schedulerName` to add to that profile. Who replaces
            `NodeResourcesFit` requires `node.free.cpu >= pod.request.cpu`, and the same of memory, by a filter of their own.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: SchedulingProfile
            metadata: {name: trials}
            spec:
              schedulerName: trials
              filters:
                - {name: Taints, plugin: TaintToleration}
                - {name: NodeResourcesFit, plugin: NodeResourcesFit}
            """,
    ),
    Code.written(
        "KP409",
        "score out of its range",
        severity=Severity.WARNING,
        explanation="""
            A score's value is not always from 0 to 100: a constant or an interval lies outside, an input was found on which it
            does, or it is a share of two quantities, which lies between 0 and 1.
            """,
        why="""
            Scores are weighed against each other as numbers from 0 to 100: one of 500 drowns all others, a share is drowned by them.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: SchedulingProfile
            metadata: {name: koord-scheduler}
            spec:
              schedulerName: koord-scheduler
              variables: [{name: n, expression: node.allocatable.cpu}]
              scores:
                - {name: Free, value: {cel: "variables.n > 0 ? node.free.cpu / variables.n : 0.0"}}
            """,
        advice="""
            Multiply a share by 100.0, keep a formula within by `min(100.0, max(0.0, ...))`. How much a score counts beside others
            is its `weight`; `normalize` brings any numbers to 0 to 100.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: SchedulingProfile
            metadata: {name: koord-scheduler}
            spec:
              schedulerName: koord-scheduler
              variables: [{name: n, expression: node.allocatable.cpu}]
              scores:
                - {name: Free, value: {cel: "variables.n > 0 ? node.free.cpu / variables.n * 100.0 : 0.0"}}
            """,
    ),
    Code.written(
        "KP410",
        "requirement that never changes",
        severity=Severity.WARNING,
        explanation="""
            What an AdmissionRule, a filter or a rollout's guard requires is true on every input there can be, or false on every one.
            """,
        why="""
            One that is never met refuses every pod, every node, every revision; one that always is has no effect.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: teams}
            spec:
              require: {cel: "pod.labels[?'team'].orValue('') in []"}
            """,
        advice="""
            Correct the requirement. Who means to refuse all that a selector takes writes `require: false` beside `match`; who means to turn a rule off, `enabled: false`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: teams}
            spec:
              require: {cel: "pod.labels[?'team'].orValue('') in ['shop', 'search']"}
            """,
    ),
    Code.written(
        "KP411",
        "class and band that admission refuses",
        severity=Severity.WARNING,
        explanation="""
            A ColocationProfile gives pods a QoS class and a priority band that a rule of admission, of the pack or of the bundle, does
            not let through together: all pods that it is applied to, those that an arm of an expression is about, or those that
            have no class, where it says a band alone. Of some pods one is shown.
            """,
        why="""
            These pods are refused: nothing of the kind can be created.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ColocationProfile
            metadata: {name: reports}
            spec:
              match: {pods: {matchLabels: {app: reports}}}
              qosClass: LSE
              band: batch
            """,
        advice="""
            Choose a class and a band that go together: `permittedBands` of the class lists its bands, and only pods of the class BE request batch resources.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ColocationProfile
            metadata: {name: reports}
            spec:
              match: {pods: {matchLabels: {app: reports}}}
              qosClass: BE
              band: batch
            """,
    ),
    Code.written(
        "KP412",
        "document that sets nothing",
        severity=Severity.WARNING,
        explanation="""
            A policy has no field that says anything: an empty `spec`, or a `match` alone.
            """,
        why="""
            It is read and changes no decision; most likely a line is missing, or stands elsewhere.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: web}
            spec:
              match: {nodes: {matchLabels: {pool: web}}}
            """,
        advice="""
            Say what it is to change, or remove it.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: web}
            spec:
              match: {nodes: {matchLabels: {pool: web}}}
              parameters: {threshold: 55%}
            """,
    ),
    Code.written(
        "KP413",
        "two documents of one rollout",
        severity=Severity.WARNING,
        explanation="""
            Two Rollouts of a bundle have steps. There is one rollout, however its documents are called: the steps of both are gone through, one document after the other.
            """,
        why="""
            A revision takes the time of both, and goes through shares of nodes that it has passed already.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Rollout
            metadata: {name: agents}
            spec:
              steps: [{name: few, canary: {share: 5%}, hold: 30m}]
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: Rollout
            metadata: {name: managers}
            spec:
              steps: [{name: some, canary: {share: 20%}, hold: 30m}]
            """,
        advice="""
            Say all steps in one document.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Rollout
            metadata: {name: all}
            spec:
              steps:
                - {name: few, canary: {share: 5%}, hold: 30m}
                - {name: some, canary: {share: 20%}, hold: 30m}
            """,
    ),
    Code.written(
        "KP414",
        "quotas that do not add up",
        severity=Severity.WARNING,
        explanation="""
            Quotas that policy gives, under `quotas` of a QuotaTree, are guaranteed more together than the quota above them, more than they may have, or something that they do not track; one stands below itself or below none, or in another tree than the one above it; one may have something that the one above it does not track; or one weighs nothing in what is left, and never gets more than its min.
            """,
        why="""
            Where there is less than all guarantees, each is kept in part only, whatever people were promised; a quota without a way to the root has nothing. What the quota above does not track is not shared out, and pods are not held to it.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QuotaTree
            metadata: {name: teams}
            spec:
              quotas:
                - {name: research, min: {cpu: 10}, max: {cpu: 40}}
                - {name: vision, parent: research, min: {cpu: 8}, max: {cpu: 40}}
                - {name: speech, parent: research, min: {cpu: 8}, max: {cpu: 40}}
            """,
        advice="""
            Guarantee a quota what all below it are guaranteed together.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QuotaTree
            metadata: {name: teams}
            spec:
              quotas:
                - {name: research, min: {cpu: 16}, max: {cpu: 40}}
                - {name: vision, parent: research, min: {cpu: 8}, max: {cpu: 40}}
                - {name: speech, parent: research, min: {cpu: 8}, max: {cpu: 40}}
            """,
    ),
    Code.written(
        "KP415",
        "gangs that are never placed",
        severity=Severity.WARNING,
        explanation="""
            A GangScheduling document was tried out on a gang that needs two pods and has them: it is never tried, or its pods give their nodes back before all have one, or it is not bound although all have one. The same is told where such a gang needs no pod at all.
            """,
        why="""
            Its pods wait for ever, whatever room there is, and nothing in the cluster is wrong; or a job starts in part, and holds nodes while it waits for the rest of itself.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: GangScheduling
            metadata: {name: hasty}
            spec:
              parameters:
                defaultTimeout: 0s
            """,
        advice="""
            Let pods wait for as long as the others of their gang may take to find nodes.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: GangScheduling
            metadata: {name: hasty}
            spec:
              parameters:
                defaultTimeout: 60s
            """,
    ),
    Code.written(
        "KP416",
        "a usual pod that no pod can be",
        explanation="""
            An entry of `usualPods` of a DeviceSharing document does not say what a pod asks for: its CPU in millicores, then how many
            devices with how much of each in percent, then the models that will do; or its weight is below nothing.
            """,
        why="""
            Fragmentation is what usual pods cannot use of what is free. Without knowing one of them it cannot be measured, and no pod
            would be scheduled by it.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: DeviceSharing
            metadata: {name: gpu}
            spec:
              scheduling:
                usualPods: {4000m: 3, 4 cores 1x50: 10}
            """,
        advice="""
            `4000m` is a pod without devices, `4000m 1x50` one with half a device, `8000m 2x100 A100|H100` one with two whole ones of
            either model. The number behind the colon is how often there are such pods, compared with the others.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: DeviceSharing
            metadata: {name: gpu}
            spec:
              scheduling:
                usualPods: {4000m: 3, 4000m 1x50: 10}
            """,
    ),
    Code.written(
        "KP417",
        "policies that undo each other",
        severity=Severity.WARNING,
        explanation="""
            A strategy of a Descheduling profile takes pods from nodes above some load, and a SchedulingProfile places pods there up to a
            higher one: its parameter `usageThresholds`, or `prodUsageThresholds` for `prodHigh`; 0%, or no number, is no limit. Or two
            strategies are in use, of one profile or of two, of which one moves pods to nodes that have many and the other away from
            them: the former's `release` and `takes` were tried out on nodes that are empty, full and between, and it was not proved
            that the two look at other nodes or other pods. It is a note where every pod goes only where the scheduler says that it
            ends better (`relocating.better`): then none goes back and forth, though others may come where it was. Loads that
            expressions of filters compare are not looked at, nor pods so large that one alone lifts a node above a threshold.
            """,
        why="""
            The scheduler fills what the descheduler has just emptied, or one strategy brings back what the other took away: pods are
            started again and again, and nothing becomes better.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: LowNodeLoad
                  enabled: true
                  relocating: {better: false}
                  load: {low: {cpu: 40%}, high: {cpu: 60%}}
            """,
        advice="""
            Let the scheduler place pods no further than to where the descheduler leaves them: here the pack's filter lets nodes have 65 %
            of their CPU in use. Or let the scheduler be asked: `relocating: {better: true}`, as
            the pack does. Of strategies against each other have one, or let each look at nodes of its own.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: LowNodeLoad
                  enabled: true
                  relocating: {better: false}
                  load: {low: {cpu: 40%}, high: {cpu: 70%}}
            """,
    ),
    Code.written(
        "KP418",
        "strategy or setting without effect",
        severity=Severity.WARNING,
        explanation="""
            A document says something of a strategy that the pack brings and has off, and does not turn it on. Or a strategy is on
            and moves nobody, whatever nodes and pods are like: it has no thresholds, its `total` is 0, or its `candidates` or
            `release` is never true, mostly for a parameter that nothing is said of. Or a parameter is said that only strategies read which
            are off. A note tells of fields of anything else that the pack, or a default, has off: they may be a preparation.
            """,
        why="Nothing of what it says has an effect.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: PodLifeTime
                  candidates: {cel: pod.band == 'batch'}
            """,
        advice="Say `enabled: true`, or `enabled: false` where it is to be off; and the thresholds or the parameter that the message names.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              parameters: {maxPodLifeTime: {value: 168h}}
              strategies:
                - name: PodLifeTime
                  enabled: true
                  candidates: {cel: pod.band == 'batch'}
            """,
    ),
    Code.written(
        "KP419",
        "field that is never read",
        severity=Severity.WARNING,
        explanation="""
            A container hook says something, and speaks only at stages at which nobody reads that: a container gets its
            environment where it is created, a pod its annotations where its sandbox is. Or a strategy of the
            descheduler says when a node has too much of a resource, and not when it has little of it: both are needed.
            """,
        why="Nothing of what it says has an effect.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ContainerHook
            metadata: {name: threads}
            spec:
              stages: [Running]
              container: {environment: {OMP_NUM_THREADS: "1"}}
            """,
        advice="Add the stage to `stages`, or leave them out: then the hook speaks at all.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ContainerHook
            metadata: {name: threads}
            spec:
              stages: [CreateContainer]
              container: {environment: {OMP_NUM_THREADS: "1"}}
            """,
    ),
)
