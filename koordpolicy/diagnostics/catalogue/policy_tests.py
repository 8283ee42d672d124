"""KP5xx: findings in PolicyTests."""

from koordpolicy.diagnostics.catalogue.code import Code

POLICY_TESTS: tuple[Code, ...] = (
    Code.written(
        "KP501",
        "policy test fails",
        explanation="""
            A `PolicyTest` gave its facts to the compiled policies, and the decision was not what it expects. The notes
            show both values, the rule that decided, and where that rule stands.
            """,
        why="Either the change has an effect that nobody wanted, or it is meant and the test has to say so.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.target: 7
            """,
        advice="""
            Correct the policy or the expected value. `koordpolicy explain` shows how the decision came about.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.target: 5500m
            """,
    ),
    Code.written(
        "KP502",
        "unknown decision in a test",
        explanation="A test expects a value of a decision that the bundle and its packs do not have.",
        why="A misspelt decision would be compared with nothing, and the test would pass for ever.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.targets: 5500m
            """,
        advice="Take the suggested name. `koordpolicy graph` lists the decisions of a bundle.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.target: 5500m
            """,
    ),
    Code.written(
        "KP503",
        "unknown or ill-typed fact in a test",
        explanation="""
            A test gives a fact that does not exist, or gives one a value of another type or unit than it is declared
            with.
            """,
        why="A misspelt fact leaves the real one missing, and the test would show what happens without it.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpus: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.target: 5500m
            """,
        advice="Take the suggested name; the manual lists facts with their types. Write quantities as policies do.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect:
                    CPUSuppress.target: 5500m
            """,
    ),
    Code.written(
        "KP504",
        "too little coverage",
        explanation="""
            The cases of the bundle's tests take a smaller share of the branches of its expressions than
            `tests.minimumCoverage` asks for. Branches are the arms of `?:`, what is true or false (operands of `&&` and
            `||`, conditions, selectors), optionals that have a value or none, and formulas without any of these.
            """,
        why="A branch that no case takes can be changed by accident, and every test still passes.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec:
              extends: [koordinator]
              tests: {minimumCoverage: 100}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              minimum: {cel: "node.capacity.cpu > cpu('8') ? cpu('2') : cpu('1')"}
            """,
        advice="`koordpolicy test --coverage` lists the branches that no case takes. Add a case for them.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec:
              extends: [koordinator]
              tests: {minimumCoverage: 100}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              minimum: {cel: "node.capacity.cpu > cpu('8') ? cpu('2') : cpu('1')"}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: best-effort work keeps two CPUs of a large node
                  given: {node: {capacity: {cpu: 16}}}
                  expect: {CPUSuppress.minimum: 2}
                - name: and one of a small node
                  given: {node: {capacity: {cpu: 4}}}
                  expect: {CPUSuppress.minimum: 1}
            """,
    ),
)
