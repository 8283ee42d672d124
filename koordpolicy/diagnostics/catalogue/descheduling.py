"""KP4xx, on: conditions of the descheduler."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

DESCHEDULING: tuple[Code, ...] = (
    Code.written(
        "KP421",
        "condition on the wrong node",
        severity=Severity.WARNING,
        explanation="""
            `takes` of a strategy says which nodes may take a pod. Such a node is `target`; `node` is the one that the pod is to leave.
            The condition reads `node` and never `target`, so it is the same for every node that could take the pod.
            """,
        why="Pods go to nodes that were to be kept from them, or go nowhere.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: RemovePodsViolatingNodeTaints
                  enabled: true
                  takes: {cel: "node.labels[?'pool'].orValue('') == 'batch'"}
            """,
        advice="Read `target`. Which nodes give pods away is said by `release`, or by `nodes` of the strategy.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: RemovePodsViolatingNodeTaints
                  enabled: true
                  takes: {cel: "target.labels[?'pool'].orValue('') == 'batch'"}
            """,
    ),
    Code.written(
        "KP422",
        "strategy that moves everybody",
        severity=Severity.WARNING,
        explanation="""
            A strategy without a plugin lets a pod go where `candidates` says that it may and `release` says that its node gives some
            away. Both are true of every pod and every node, `takes` and `nodes` as well, no `most` or `total` says how many go in a round,
            and `relocating: {better: false}` has pods go that end no better elsewhere. `release` is true where nothing is said of it.
            """,
        why="In each round every pod that may be moved leaves its node, the next round those that have just come.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: spread-anew
                  candidates: true
                  release: true
                  relocating: {better: false}
            """,
        advice="Say which pods go (`candidates`) or which nodes give some away (`release`), or ask the scheduler whether pods end better.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Descheduling
            metadata: {name: koord-descheduler}
            spec:
              strategies:
                - name: spread-anew
                  candidates: true
                  release: {cel: "node.labels[?'pool'].orValue('') == 'old'"}
                  relocating: {better: false}
            """,
    ),
)
