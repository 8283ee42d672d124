"""KP2xx: CEL expressions whose syntax, names, types or units are wrong."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

EXPRESSIONS: tuple[Code, ...] = (
    Code.written(
        "KP201",
        "CEL syntax",
        explanation="""
            The text is no CEL expression. CEL looks much like C, Go or Python, with `&&`, `||`, `!`, `? :` and `in`;
            there are no statements, no assignment, and no `and`, `or` or `not`.
            """,
        why="An expression that cannot be parsed decides nothing, so the revision is refused before it reaches a cluster.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "node.unschedulable and node.name != 'edge'"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="Look at the marked place: the parser got that far and no further. The help line names what it expected.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "node.unschedulable && node.name != 'edge'"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP202",
        "unknown name",
        explanation="""
            An expression begins with a name that is not in scope. In scope are the facts of the decision (`node`,
            `pod`, `namespace`, `cluster`, `now`, ...), `variables`, `parameters` and `constants`, and what an enclosing
            macro binds.
            """,
        why="CEL would fail with an error at run time, on every node and for every pod.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {share: {type: percent, value: 65%}}
              target: {cel: nodes.capacity.cpu * parameters.share}
            """,
        advice="""
            Take the suggested name. Variables, parameters and constants are reached through their group:
            `variables.budget`, `parameters.share`, `constants.reserve`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {share: {type: percent, value: 65%}}
              target: {cel: node.capacity.cpu * parameters.share}
            """,
    ),
    Code.written(
        "KP203",
        "unknown field or fact",
        explanation="""
            A record such as `node` or `pod` has no field of this name, or a group of facts such as `node.usage` is used
            where one of its members is meant.
            """,
        why="A misspelt fact is never there, and a rule that reads it never decides what its author meant.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpus * percent(65) - node.usage.prod.cpu}}
            """,
        advice="Take the suggested name, or look the fact up in the manual, which lists every fact with type, unit and meaning.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.cpu}}
            """,
    ),
    Code.written(
        "KP204",
        "units do not fit",
        explanation="""
            Two quantities with different units meet in a sum, a difference or a comparison, or a product has a unit
            that does not exist. Sums and comparisons take one unit; a quantity times a percentage or a ratio keeps its
            unit; a quantity divided by one of the same unit is a ratio.
            """,
        why="""
            CPU counts millicores and memory bytes. Added up, they give a number that looks plausible and means nothing,
            and a node would be oversold by it.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.memory}}
            """,
        advice="""
            Compare shares instead of amounts (`node.usage.prod.cpu / node.capacity.cpu`), or take the fact of the other
            resource. `number(q)` drops a unit on purpose.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.cpu}}
            """,
    ),
    Code.written(
        "KP205",
        "types do not fit",
        explanation="""
            An operator or function has no form for operands of these types: a text plus a number, a comparison of a
            truth value with a list, `&&` between numbers. CEL converts nothing by itself, not even an integer to a
            double.
            """,
        why="CEL would fail with `no such overload` whenever the expression runs.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "'zone-' + size(node.zones) == node.labels['zones']"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="Convert one side: `string(n)`, `int(x)`, `double(n)`. The note lists the forms that exist.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "'zone-' + string(size(node.zones)) == node.labels[?'zones'].orValue('')"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP206",
        "fact not available here",
        explanation="""
            The fact exists, but not where this decision is made. A webhook sees the pod before any node is chosen; only
            the node's agent knows what the kernel counts this second; only the scheduler knows a pod's place in the
            queue.
            """,
        why="The value would be missing every time the rule is asked, so the rule would never apply, or always fail.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ColocationProfile
            metadata: {name: small-work}
            spec:
              match: {condition: pod.usage.cpu < cpu("2")}
              band: batch
              qosClass: BE
            """,
        advice="""
            Use a fact that is known there, or move the rule to a kind that is asked where the fact is known.
            The manual lists for each fact which components supply it.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: ColocationProfile
            metadata: {name: small-work}
            spec:
              match: {condition: pod.request.cpu < cpu("2")}
              band: batch
              qosClass: BE
            """,
    ),
    Code.written(
        "KP207",
        "unknown function",
        explanation="""
            There is no function or method of this name: neither in CEL, nor in its libraries (strings, math, lists,
            sets, encoders, optionals, network), nor among the helpers, nor in a `Library` of the bundle.
            """,
        why="CEL would fail whenever the expression runs.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: 'maximum(node.capacity.cpu * percent(65), cpu("1"))'}}
            """,
        advice="Take the suggested name, look it up in the manual's list of functions, or define it in a `Library`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: 'max(node.capacity.cpu * percent(65), cpu("1"))'}}
            """,
    ),
    Code.written(
        "KP208",
        "result is not what the decision needs",
        explanation="""
            The expression is sound, but its result has another type or unit than its place takes: a truth value where
            an amount of CPU is decided, bytes where millicores are. A condition must give a truth value.
            """,
        why="The component that asks could do nothing with the answer.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.usage.total.memory}}
            """,
        advice="The message names both types. A ratio becomes an amount when multiplied by one; a comparison gives a truth value.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.cpu}}
            """,
    ),
    Code.written(
        "KP209",
        "bad literal argument",
        explanation="""
            A text that a function takes is malformed: `cpu("4 cores")`, `duration("15 minutes")`, a timestamp that is
            not RFC 3339, a regular expression that RE2 refuses, a format string whose places do not match its list. A warning
            where it can be read, and hardly means what it says: `memory('512m')` is half a byte, `percent(0.6)` is not 60 %.
            """,
        why="Since the text stands in the policy, the call would fail every time; this can be said now.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu - cpu("4 cores")}}
            """,
        advice="""
            Write quantities as Kubernetes does (`"4"`, `"500m"`, `"200Mi"`), durations as `"15m"` or `"1h30m"`, times as
            `"2026-01-31T08:00:00Z"`. RE2 has no look-around and no back-references.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu - cpu("4")}}
            """,
    ),
    Code.written(
        "KP210",
        "literal out of range",
        explanation="""
            A number cannot be held by its type: integers have 64 bits with a sign, unsigned ones (`5u`) 64 bits
            without, and a constant part of the expression overflows or gives an infinite value.
            """,
        why="Arithmetic in CEL never wraps around. An overflow is an error, and here it would come every time.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: node.capacity.pods < 99999999999999999999}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice='Correct the number. For amounts, suffixes are easier to get right: `memory("16Ti")`.',
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: node.capacity.pods < 500}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP211",
        "expression too long or too deep",
        explanation="""
            An expression exceeds the parser's limits on its length, the depth of its nesting, or the number of its
            parts. The message names the limit. People do not reach them; generated text does.
            """,
        why="The limits keep a single file from exhausting the memory or the stack of the components that compile it.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              # stands for a condition of many thousand generated terms
              match: {condition: node.name == "n-00001" || node.name == "n-00002" || node.name == "n-00003"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Label the nodes or pods and select by label, test membership in a list (`node.name in constants.canaries`),
            or split the expression into variables.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {nodes: {matchLabels: {canary: "true"}}}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP212",
        "division by zero",
        explanation="The divisor is a literal zero, or constants that come out as zero.",
        why="Dividing an integer or a quantity by zero is an error in CEL, so the expression never gives a value.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu / 0}}
            """,
        advice="Correct the divisor. Where a fact may be zero, test it first: `n == 0 ? 0 : total / n`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu / 2}}
            """,
    ),
    Code.written(
        "KP213",
        "bare number where a unit is needed",
        explanation="""
            A number without unit meets a quantity: is `node.usage.prod.cpu > 4` about four cores or four millicores?
            Only a plain `0` fits every unit.
            """,
        why="Off by a factor of a thousand, a threshold is met always or never.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: node.capacity.cpu >= 4}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Write the unit: `cpu("4")`, `memory("1Gi")`, `percent(65)`, `duration("15m")`. A computed number gets its
            unit by `millicores(n)` or `bytesOf(n)`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: node.capacity.cpu >= cpu("4")}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP214",
        "condition that never changes",
        severity=Severity.WARNING,
        explanation="""
            A comparison comes out the same for every possible input: one side cannot exceed the other's bound (a size is
            never negative, an hour never 24), both sides are the same, or their types can never be equal. The parts of an `&&`
            exclude each other, one part of an `||` always holds, or a literal stands where `?` asks for a condition.
            """,
        why="The author had a distinction in mind that the expression does not make.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: size(node.zones) >= 0}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="Correct the bound or the fact; remove the comparison if nothing is to be distinguished.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: size(node.zones) >= 2}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP215",
        "access that can fail",
        severity=Severity.WARNING,
        explanation="""
            A key that a map need not have, a fact that may be missing, an index beyond the end of a list, or the value of
            an optional that may have none: where it is not there, the evaluation ends in an error. What is tested before
            on the same way counts: `has(x.y)`, `'k' in m`, `m[?'k']`, `size(l) > 0`, both sides of `&&`, `||` and `? :`,
            a `filter`, and the document's own match.
            """,
        why="""
            Most nodes do not have most labels. What an error does stands in the manual, kind by kind (`errors.md`): no
            rule takes a default away by it, but the clause does not say what its author meant.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "node.labels['team'] == 'a'"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Say what holds without it: `node.labels[?'team'].orValue('') == 'a'`, `has(node.usage.total.cpu) && ...`. The
            finding has the edit where there is one; `koordpolicy check --fix` offers it.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "node.labels[?'team'].orValue('') == 'a'"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP216",
        "operand that is not always taken",
        severity=Severity.WARNING,
        explanation="""
            A divisor that may be zero, a text that need be no number, quantity, time or address, an empty list of which the
            greatest is asked for, a value of any type where one is wanted: an operator or function has no value for it,
            and the evaluation ends in an error.
            """,
        why="Labels and annotations hold whatever somebody wrote there, and a node that has just joined has no capacity.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "int(node.labels[?'tier'].orValue('0')) > 2"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Test it before, in the same expression: `d != 0 && ...`, `isQuantity(x) && ...`,
            `x.matches('^[0-9]{1,9}$') && ...`, `size(l) > 0 && ...`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables: [{name: tier, expression: "node.labels[?'tier'].orValue('0')"}]
              match: {condition: "variables.tier.matches('^[0-9]{1,9}$') && int(variables.tier) > 2"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP217",
        "result that may not fit",
        severity=Severity.WARNING,
        explanation="""
            A whole number may grow beyond 64 bits, which is an error in CEL: a product or sum of numbers that a text says, an
            amount multiplied by a very large constant, a double cut to a whole number that has no bounds or may be no
            number, as the root of what may be below zero is. So may times: two of them lie at most 292 years apart. Amounts
            of nodes and pods, and parameters, are taken to be such as clusters have; arithmetic with them alone is not
            reported.
            """,
        why="Whoever may write the text decides whether the rule can be evaluated.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: "millicores(double(number(node.capacity.cpu)) / double(size(node.pods)))"}}
            """,
        advice="Bound the operands first, or test what divides: `size(l) > 0 ? ... : ...`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: "size(node.pods) > 0 ? node.capacity.cpu / size(node.pods) : node.capacity.cpu"}
            """,
    ),
    Code.written(
        "KP218",
        "expression that can only fail",
        explanation="""
            Constants alone make this part of the expression end in an error whenever it is reached: an index beyond a
            written list, a key that a written map does not have, a time zone that does not exist.
            """,
        why="It never has a value, so that the rule never says what it seems to say.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: "node.capacity.cpu * [percent(65), percent(80)][2]"}}
            """,
        advice="Correct the constant.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: "node.capacity.cpu * [percent(65), percent(80)][1]"}}
            """,
    ),
    Code.written(
        "KP219",
        "text that shows something else than it holds",
        severity=Severity.WARNING,
        explanation="""
            A text or comment of an expression holds a character that cannot be seen, that turns the direction in which
            the line is shown, or a letter of another script amid letters that it looks like.
            """,
        why="""
            Two texts that look the same then differ: a comparison with a label never holds, and a reviewer reads another
            rule than the one that decides.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: no-batch}
            spec:
              require: {cel: "pod.namespace != 'b\u0430tch'"}
            """,
        advice="Write the letter that is meant; `check --fix --unsafe-fixes` does. A message in another language is not reported.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: no-batch}
            spec:
              require: {cel: "pod.namespace != 'batch'"}
            """,
    ),
    Code.written(
        "KP220",
        "comment that takes in lines below it",
        explanation="""
            YAML joins the lines of a text after `>`, of one in quotes and of one without either. A comment begins with
            `//` and ends with the line of the expression, so that in such a text it goes on through the lines below.
            """,
        why="Conditions that stand there for every reader would be no part of the policy: a rule would admit more than it says.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: owned}
            spec:
              require:
                cel: >-
                  'owner' in pod.labels // everybody
                  && pod.labels['owner'].matches('^[a-z]+$')
            """,
        advice="""
            Begin the block with `|`, which keeps its lines, or move the comment out of the expression, as a comment of YAML;
            `check --fix --unsafe-fixes` writes the `|`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: AdmissionRule
            metadata: {name: owned}
            spec:
              require:
                cel: |
                  'owner' in pod.labels // everybody
                  && pod.labels['owner'].matches('^[a-z]+$')
            """,
    ),
)
