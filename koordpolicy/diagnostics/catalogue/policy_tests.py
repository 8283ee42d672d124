"""KP5xx: findings in PolicyTests."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

POLICY_TESTS: tuple[Code, ...] = (
    Code.written(
        "KP501",
        "policy test fails",
        explanation="""
            A `PolicyTest` gave its facts to the compiled policies, and the decision was not what it expects. The notes
            show both values, the rule that decided, and where that rule stands. Where something that `check` warns of explains
            the failure, the warning is an error instead, with a note that names the case.
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
        "unknown or impossible fact in a test",
        explanation="""
            A test gives a fact that does not exist, or gives one a value of another type or unit than it is declared
            with, or one that it never has: no reader of objects lets a priority beyond 32 bits through.
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
    Code.written(
        "KP505",
        "case that expects nothing",
        explanation="A case of a `PolicyTest` has an empty `expect`.",
        why="It passes whatever the policies decide, and looks like a test all the same.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect: {}
            """,
        advice="Name the decisions that the case is about. `koordpolicy test --update` corrects values, not names.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: what the system uses is left to it
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect: {CPUSuppress.target: 5500m}
            """,
    ),
    Code.written(
        "KP506",
        "two cases of one name",
        severity=Severity.WARNING,
        explanation="Two cases of a `PolicyTest` have the same name.",
        why="A report names the case that failed; which of the two, nobody can tell. Often one was copied and not finished.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              given: {node: {capacity: {cpu: "10"}}}
              cases:
                - name: a node
                  given: {node: {usage: {total: {cpu: 1}}}}
                  expect: {CPUSuppress.target: 5500m}
                - name: a node
                  given: {node: {usage: {total: {cpu: 2}}}}
                  expect: {CPUSuppress.target: 4500m}
            """,
        advice="Say in each name what is special about the case.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              given: {node: {capacity: {cpu: "10"}}}
              cases:
                - name: the system uses one core
                  given: {node: {usage: {total: {cpu: 1}}}}
                  expect: {CPUSuppress.target: 5500m}
                - name: the system uses two cores
                  given: {node: {usage: {total: {cpu: 2}}}}
                  expect: {CPUSuppress.target: 4500m}
            """,
    ),
    Code.written(
        "KP507",
        "bundle without a policy of its own",
        severity=Severity.WARNING,
        explanation="A bundle has tests at most, and no document that says anything.",
        why="""
            It decides what its packs decide. Most often a file is missing from it: `include` does not name it, or it
            lies elsewhere.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec:
              extends: [koordinator]
            """,
        advice="Add a document that says what differs from the packs. Who wants a pack as it is needs no bundle.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec:
              extends: [koordinator]
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: shop}
            spec:
              parameters: {threshold: 70%}
            """,
    ),
    Code.written(
        "KP508",
        "test of other people's policies",
        severity=Severity.WARNING,
        explanation="""
            No document of the bundle has a part in any decision that a `PolicyTest` expects, neither by a rule nor by a
            parameter.
            """,
        why="The test passes whatever the bundle says. It shows what a pack does, which the pack's own tests do already.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: shop}
            spec:
              parameters: {threshold: 70%}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: best-effort work is held to a share of time
                  expect: {CPUSuppress.mechanism: cpuset}
            """,
        advice="Expect a decision that the bundle changes.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: shop}
            spec:
              parameters: {threshold: 70%}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyTest
            metadata: {name: suppress}
            spec:
              cases:
                - name: seven of ten cores, less one that the system uses
                  given: {node: {capacity: {cpu: "10"}, usage: {total: {cpu: 1}}}}
                  expect: {CPUSuppress.target: 6}
            """,
    ),
)
