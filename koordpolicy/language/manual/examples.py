"""One example a kind, as the manual shows it: the `metadata` and `spec` of a document, which `check` finds sound."""

from collections.abc import Mapping
from textwrap import dedent
from types import MappingProxyType

from koordpolicy.language.kinds import API_VERSION

_SPECS = {
    "PolicyBundle": """
        metadata: {name: shop}
        spec:
          extends: [koordinator]
          tests: {minimumCoverage: 80}
    """,
    "Library": """
        metadata: {name: shop}
        spec:
          constants:
            quietHours: [22, 23, 0, 1, 2, 3, 4, 5]
          functions:
            - name: usedShare
              description: Share of a node's CPUs that is in use; none where nobody measures it.
              parameters: [{name: n, type: node}]
              expression: n.?usage.total.cpu.orValue(cpu('0')) / n.capacity.cpu
    """,
    "QoSClass": """
        metadata: {name: be}
        spec:
          protectionOrder: 15
    """,
    "PriorityBand": """
        metadata: {name: batch}
        spec:
          default: 5600
    """,
    "ColocationProfile": """
        metadata: {name: reports}
        spec:
          match:
            pods: {matchLabels: {job: report}}
          probability: 50%
          qosClass: BE
          band: batch
          labels: {example.com/co-located: "true"}
    """,
    "AdmissionRule": """
        metadata: {name: owned}
        spec:
          match:
            pods: {matchLabels: {tier: front}}
          operations: [CREATE]
          require: {cel: "'example.com/owner' in pod.labels"}
          reason: owner-missing
          message: a pod of the front needs the label `example.com/owner`
    """,
    "ProfileReconciliation": """
        metadata: {name: existing}
        spec:
          enabled: {cel: "colocationProfile.name.startsWith('team-') && !('example.com/fixed' in pod.labels)"}
          mostPerSecond: 20
    """,
    "QuotaTree": """
        metadata: {name: quotas}
        spec:
          quotaOfPod: {cel: "pod.labels[?'team'].orValue('nobody')"}
          admission: {enabled: true}
    """,
    "QuotaProfile": """
        metadata: {name: quotas}
        spec:
          ratio: 0.9
          keys: [cpu, memory, nvidia.com/gpu]
    """,
    "Recommendation": """
        metadata: {name: front}
        spec:
          match: {condition: "workload.namespace == 'front'"}
          cpu: {target: 98%, margin: 25%, minimum: 100m}
          memory: {target: 100%}
    """,
    "CPUTopology": """
        metadata: {name: databases}
        spec:
          match: {nodes: {matchLabels: {pool: databases}}}
          nodes: {alignment: SingleNUMANode, strategy: MostAllocated}
    """,
    "ReservationPolicy": """
        metadata: {name: nightly}
        spec:
          matching:
            allows: {cel: "reservation.labels[?'team'].orValue('') == pod.labels[?'team'].orValue('')"}
          removal: {after: 1h}
    """,
    "DeviceSharing": """
        metadata: {name: gpu}
        spec:
          requests:
            derive:
              koordinator.sh/gpu.shared: 1
    """,
    "Overcommit": """
        metadata: {name: reserve}
        spec:
          resource: batch
          match:
            nodes: {matchLabels: {pool: web}}
          parameters:
            cpuReclaim: 50%
    """,
    "MetricCollection": """
        metadata: {name: closely}
        spec:
          match: {nodes: {matchLabels: {pool: colocated}}}
          every: 15s
          averagesOver: 60s
    """,
    "DeviceResource": """
        metadata: {name: gpu}
        spec:
          parameters:
            shared: true
    """,
    "Amplification": """
        metadata: {name: speeds}
        spec:
          parameters:
            normalize: true
            turboRatios: {value: {Xeon 8369B: 1.3, Xeon 8269CY: 1.1}}
            defaultRatio: 1.0
    """,
    "NodeReservation": """
        metadata: {name: storage}
        spec:
          match: {nodes: {matchLabels: {pool: storage}}}
          enabled: true
          cpu: 4
          memory: 8Gi
    """,
    "YARNNode": """
        metadata: {name: night-shift}
        spec:
          match: {nodes: {matchLabels: {pool: hadoop}}}
          parameters: {headroom: 50%}
          overCommitTimeout: 2m
    """,
    "CPUSuppress": """
        metadata: {name: colocated-pool}
        spec:
          match:
            nodes: {matchLabels: {pool: colocated}}
          parameters:
            threshold: 75%
          minimum: {cel: "node.capacity.cpu >= cpu('64') ? cpu('4') : cpu('2')"}
    """,
    "CPUEviction": """
        metadata: {name: starving}
        spec:
          match: {nodes: {matchLabels: {pool: colocated}}}
          enabled: true
          bestEffort: {enabled: true, threshold: 30%, upper: 40%, usage: 90%}
    """,
    "MemoryEviction": """
        metadata: {name: early}
        spec:
          enabled: true
          threshold: 80%
          lower: 75%
          bestEffort: {enabled: true}
    """,
    "Prediction": """
        metadata: {name: careful}
        spec:
          match: {nodes: {matchLabels: {pool: front}}}
          margin: 20%
          coldStart: 48h
    """,
    "CPUBurst": """
        metadata: {name: front}
        spec:
          match: {nodes: {matchLabels: {pool: front}}}
          policy: auto
          quota: {ceiling: 200%, period: 10m}
    """,
    "Isolation": """
        metadata: {name: best-effort}
        spec:
          group: BE
          cpu: {enabled: true, identity: -1}
          cache: {enabled: true, start: 0%, end: 30%}
          network: {enabled: true, egress: {limit: 40%}}
    """,
    "SystemTuning": """
        metadata: {name: reclaim-early}
        spec:
          match: {nodes: {matchLabels: {pool: colocated}}}
          minFreeFactor: 100
          watermarkScaleFactor: 150
    """,
    "HostApplicationSet": """
        metadata: {name: storage}
        spec:
          applications:
            - {name: chunkserver, priority: koord-prod, qos: LS, cgroupPath: {relativePath: storage}}
    """,
    "Interference": """
        metadata: {name: waiting-services}
        spec:
          when: {cel: "pod.qosLabel == 'LS' && has(pod.pressure.cpu.some) && pod.pressure.cpu.some > percent(20)"}
          after: 10s
          reaction: SuppressBestEffort
          share: 10%
          lasts: 1m
    """,
    "Arbitration": """
        metadata: {name: shares}
        spec:
          file: cpu.shares
          order: [batch-resources]
          rule: Smallest
    """,
    "ContainerHook": """
        metadata: {name: reports}
        spec:
          match:
            pods: {matchLabels: {job: report}}
            condition: has(pod.extendedContainers)
          pod:
            cpuLimit: {cel: "pod.extendedContainers.map(c, c.limit.batch.cpu).sum()"}
          container:
            environment: {cel: "{'WORKER': container.name, 'NODE': node.name}"}
    """,
    "RuntimeHooks": """
        metadata: {name: node}
        spec:
          match: {nodes: {matchLabels: {pool: batch}}}
          stages: [RunPodSandbox, CreateContainer]
          failurePolicy: Fail
    """,
    "SchedulingProfile": """
        metadata: {name: koord-scheduler}
        spec:
          schedulerName: koord-scheduler
          filters:
            - name: QuietNodes
              match: {condition: pod.band == 'prod'}
              require: {cel: "node.labels[?'example.com/watched'].orValue('') != 'true'"}
              reason: node(s) are being watched
          scores:
            - name: Balance
              plugin: NodeResourcesBalancedAllocation
              weight: 1
              parameters: {resources: [cpu, memory]}
    """,
    "GangScheduling": """
        metadata: {name: training}
        spec:
          gangOfPod: {cel: "pod.labels[?'training.kubeflow.org/job-name'].orValue(gangOf(pod.labels, pod.annotations))"}
          parameters:
            defaultTimeout: 120s
            joinsRunning: true
    """,
    "Descheduling": """
        metadata: {name: koord-descheduler}
        spec:
          strategies:
            - name: LowNodeLoad
              enabled: true
              load: {low: {cpu: 45%, memory: 55%}, high: {cpu: 65%, memory: 95%}}
            - name: too-many-restarts
              candidates: {cel: pod.restarts >= 100}
              order: [{cel: -pod.restarts}]
              fits: false
              reason: {cel: "'it was restarted ' + string(pod.restarts) + ' times'"}
    """,
    "Migration": """
        metadata: {name: careful}
        spec:
          ttl: 10m
          limits: {perNode: 1, perNamespace: 10}
          workload:
            unavailable: {cel: "replicas / 20"}
          evictor: {cel: "pod.qos == 'BE' ? 'Delete' : 'Eviction'"}
    """,
    "Rollout": """
        metadata: {name: careful}
        spec:
          kinds: [CPUSuppress, Overcommit]
          steps:
            - {name: shadow, shadow: {sample: 10%}, hold: 15m}
            - {name: quarter, canary: {share: 25%}, hold: 30m}
          guards:
            - name: sound
              require: {cel: rollout.failures == 0}
              reason: decisions fail that did not before
    """,
    "PolicyException": """
        metadata: {name: search-reindex}
        spec:
          owner: ann@example.com
          reason: the yearly reindex needs the pool's CPUs (SEARCH-1207)
          from: "2026-11-02"
          expires: "2026-11-13"
          match: {nodes: {matchLabels: {pool: search}}}
          overrides:
            CPUSuppress.parameters.threshold: 30%
    """,
    "Invariant": """
        metadata:
          name: batch-yields-to-the-system
          annotations: {koordpolicy.io/description: "The more the system uses, the less is offered."}
        spec:
          decisions: {offer: Overcommit/batch.cpu}
          raised: [node.usage.system.cpu]         # a second node, the same but for more system use
          where: node.capacity.cpu > 0
          require: raised.offer <= decisions.offer && decisions.offer <= node.capacity.cpu
    """,
    "PolicyTest": """
        metadata: {name: suppress}
        spec:
          given: {node: {capacity: {cpu: 10}, usage: {total: {cpu: 1}}}}
          cases:
            - name: what the system uses is left to it
              expect: {CPUSuppress.target: 5500m}
            - name: an unmeasured node has no answer
              given: {node: {usage: null}}
              expect: {CPUSuppress.target: {error: node.usage}}
    """,
}

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        kind: f"apiVersion: {API_VERSION}\nkind: {kind}\n{dedent(text).strip()}\n"
        for kind, text in _SPECS.items()
    }
)
"""By kind; every kind has one."""
