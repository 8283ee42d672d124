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
)
