"""KP4xx, on: marks of what may be tuned."""

from koordpolicy.diagnostics.catalogue.code import Code

TUNING: tuple[Code, ...] = (
    Code.written(
        "KP420",
        "mark of a tunable value that means nothing",
        explanation="""
            The annotation `koordpolicy.io/tunable` names what `koordpolicy tune` may change, one value a line: a path below
            `spec`, then the least and the greatest value and the step. What the line names is no number that stands in the
            document, or its range holds nothing to choose from.
            """,
        why="`koordpolicy tune` would change something else than meant, or nothing.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Overcommit
            metadata:
              name: mine
              annotations:
                koordpolicy.io/tunable: "parameters.cpuReclam: 40% to 90% by 5%"
            spec:
              resource: batch
              parameters: {cpuReclaim: 60%}
            """,
        advice="Name a value of the same document, and write range and step in its unit.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Overcommit
            metadata:
              name: mine
              annotations:
                koordpolicy.io/tunable: "parameters.cpuReclaim: 40% to 90% by 5%"
            spec:
              resource: batch
              parameters: {cpuReclaim: 60%}
            """,
    ),
)
