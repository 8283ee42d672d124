"""KP6xx: expressions that could take too long."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

COST: tuple[Code, ...] = (
    Code.written(
        "KP601",
        "cost over budget",
        explanation="""
            Every expression gets an estimate of its worst case before it runs: lists and texts at their largest, loops
            at their longest. This one's estimate exceeds the budget of its decision. Comprehensions within
            comprehensions multiply; so do regular expressions and joins over long lists.
            """,
        why="""
            Expressions run in scheduling cycles, for every node, and in admission webhooks, within the API server's
            time limit. One that is quick on a test cluster can stop the scheduler of a large one.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match:
                condition: >-
                  node.pods.all(a, node.pods.all(b, node.pods.all(c, node.pods.all(d,
                  a.name + b.name + c.name + d.name != ""))))
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Ask for a fact that is already an aggregate (`node.usage.prod.cpu` rather than a sum over `node.pods`),
            move a loop that does not depend on the outer one into a variable, test cheap conditions first, and use
            selectors in `match` where they suffice.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "node.pods.all(p, p.name != '')"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP602",
        "budget above what operators permit",
        severity=Severity.WARNING,
        explanation="""
            `budgets.costPerDecision` asks for more than the process permits in which decisions are made
            (`--max-cost-per-decision`, which `koordpolicy check` knows, too). The lower of both holds, in the estimate
            and whenever a decision is made.
            """,
        why="""
            A bundle may lower what its decisions cost, so that a mistake is seen early. How long one may hold up
            everything else is up to whoever runs the process.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: own}
            spec:
              budgets: {costPerDecision: 50000000}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu}}
            """,
        advice="""
            Leave the budget out, or set it to what your dearest decision needs: `koordpolicy check --explain-cost` says
            how much that is. Where it must be more, ask the operators to raise their limit, and give `check` the same.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: own}
            spec:
              budgets: {costPerDecision: 200000}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu}}
            """,
    ),
)
