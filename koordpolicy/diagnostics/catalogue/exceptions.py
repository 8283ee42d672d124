"""KP7xx: exceptions and rollouts."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

EXCEPTIONS: tuple[Code, ...] = (
    Code.written(
        "KP701",
        "an exception is over",
        explanation="""
            The end date of a PolicyException lies in the past. It changes nothing any more: the ordinary policies
            decide again. `koordpolicy check` finds this by the clock; a running process does not mind.
            """,
        why="""
            Exceptions that nobody removes are read as policy by the next person, and the list of those that
            matter gets lost among them.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: move-of-2025}
            spec:
              owner: platform team
              reason: the old hall runs hot until it is cleared
              expires: 2025-03-31
              match: {nodes: {matchLabels: {hall: old}}}
              overrides:
                CPUSuppress.parameters.threshold: 45%
            """,
        advice="""
            Remove the document. If what it was made for goes on, ask its owner for a new end; what goes on for ever
            belongs in a policy with the same `match`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: old-hall}
            spec:
              match: {nodes: {matchLabels: {hall: old}}}
              parameters: {threshold: 45%}
            """,
    ),
    Code.written(
        "KP702",
        "an exception ends soon",
        severity=Severity.WARNING,
        explanation="""
            A PolicyException is in force and ends within the days that the bundle names (`exceptions.warnDays` of
            its PolicyBundle, else 14). After that the ordinary policies decide again, without a commit.
            """,
        why="A change of behaviour that nobody commits should at least be expected by somebody.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec:
              extends: [koordinator]
              exceptions: {warnDays: 100000}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: sale}
            spec:
              owner: shop team
              reason: the sale needs more room for services
              expires: 2099-11-30
              match: {nodes: {matchLabels: {pool: shop}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
        advice="""
            See that the ordinary policies fit by then. Where the exception is needed longer, give it a later end.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: sale}
            spec:
              owner: shop team
              reason: the sale needs more room for services
              expires: 2099-11-30
              match: {nodes: {matchLabels: {pool: shop}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
    ),
    Code.written(
        "KP703",
        "an exception for everything",
        explanation="""
            The `match` of a PolicyException selects nothing: no nodes, namespaces or pods, and no condition that
            could be false. The exception would stand above every policy, everywhere.
            """,
        why="""
            An exception outranks all precedence. One without limits switches a policy off for the whole cluster
            while the policy still reads as if it held.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: more-room}
            spec:
              owner: platform team
              reason: services are slow
              expires: 2099-12-31
              match: {}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
        advice="Name the nodes, namespaces or pods that need it. What holds for everything is a policy.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: more-room}
            spec:
              owner: platform team
              reason: services of the web pool are slow
              expires: 2099-12-31
              match: {nodes: {matchLabels: {pool: web}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
    ),
    Code.written(
        "KP704",
        "an exception from nothing",
        explanation="""
            A PolicyException overrides a decision that there is not: its kind, subject or field is misspelt, no
            document introduces the subject, or it is said once for the whole cluster (classes and bands), so that
            no part of the cluster can have another value.
            """,
        why="The exception would have no effect, and whoever asked for it would rely on it.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: more-room}
            spec:
              owner: platform team
              reason: services of the web pool are slow
              expires: 2099-12-31
              match: {nodes: {matchLabels: {pool: web}}}
              overrides:
                CPUSuppress.parameters.treshold: 50%
            """,
        advice="""
            `koordpolicy explain KIND` lists the decisions of a kind. A decision is written `Kind/subject.field`, or
            `Kind.field` where a kind has one subject only; parameters are decisions too.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: more-room}
            spec:
              owner: platform team
              reason: services of the web pool are slow
              expires: 2099-12-31
              match: {nodes: {matchLabels: {pool: web}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
    ),
    Code.written(
        "KP705",
        "an exception that can never hold",
        explanation="""
            The dates of a PolicyException leave it no time: it ends before it begins, or there is no such day. A
            date alone stands for the whole day, UTC: `from` for its first moment, `expires` for its last.
            """,
        why="The exception would have no effect, and whoever asked for it would rely on it.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: sale}
            spec:
              owner: shop team
              reason: the sale needs more room for services
              from: 2099-11-20
              expires: 2099-11-02
              match: {nodes: {matchLabels: {pool: shop}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
        advice="Write `from` before `expires`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyException
            metadata: {name: sale}
            spec:
              owner: shop team
              reason: the sale needs more room for services
              from: 2099-11-02
              expires: 2099-11-20
              match: {nodes: {matchLabels: {pool: shop}}}
              overrides:
                CPUSuppress.parameters.threshold: 50%
            """,
    ),
    Code.written(
        "KP706",
        "a step of a rollout that leads nowhere",
        severity=Severity.WARNING,
        explanation="""
            A step of a Rollout has a smaller share of nodes than a step before it. Nodes that have gone ahead stay
            ahead, and a smaller share of nodes is always part of a larger one: no further node follows.
            """,
        why="The step costs its time, and nothing is learnt in it. Most likely the steps stand in the wrong order.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Rollout
            metadata: {name: careful}
            spec:
              steps:
                - {name: some, canary: {share: 50%}, hold: 30m}
                - {name: few, canary: {share: 5%}, hold: 30m}
            """,
        advice="Order the steps from few nodes to many.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Rollout
            metadata: {name: careful}
            spec:
              steps:
                - {name: few, canary: {share: 5%}, hold: 30m}
                - {name: some, canary: {share: 50%}, hold: 30m}
            """,
    ),
)
