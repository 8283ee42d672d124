"""KP6xx: expressions that could take too long."""

from koordpolicy.diagnostics.catalogue.code import Code

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
)
