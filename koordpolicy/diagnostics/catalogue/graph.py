"""KP3xx: rules that do not fit together."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

GRAPH: tuple[Code, ...] = (
    Code.written(
        "KP301",
        "conflict",
        explanation="""
            Two rules set the same decision, their matches can hold at once, and neither outranks the other. Rank is
            `precedence` first, then the bundle above the pack it extends, then the narrower selector: pods before
            namespaces before nodes before none. The note shows an input on which both apply, found by running both matches.
            """,
        why="One of the two would win by accident, and another one after the next rename of a file.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: colocated}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: large}
            spec:
              match: {nodes: {matchLabels: {size: large}}}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
        advice="""
            Say which one is meant to win with `precedence`, or make the matches exclude each other.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: colocated}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: large}
            spec:
              precedence: 10
              match: {nodes: {matchLabels: {size: large}}}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
    ),
    Code.written(
        "KP302",
        "cycle",
        explanation="""
            Decisions, parameters or variables need each other in a circle, so none of them can be computed first. The
            notes show the way round.
            """,
        why="A graph with a circle has no value to give. At run time it would go on for ever.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: budget, expression: node.capacity.cpu - variables.reserve}
                - {name: reserve, expression: variables.budget * percent(10)}
              target: {cel: variables.budget}
            """,
        advice="Give one of them an expression that rests on facts alone.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: reserve, expression: node.capacity.cpu * percent(10)}
                - {name: budget, expression: node.capacity.cpu - variables.reserve}
              target: {cel: variables.budget}
            """,
    ),
    Code.written(
        "KP303",
        "match can never hold",
        explanation="""
            Selectors and condition of a `match` exclude each other: no node, pod or namespace satisfies them together.
            """,
        why="The document looks like a rule in review and does nothing in the cluster.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: large}
            spec:
              match: {condition: node.capacity.cpu < cpu("4") && node.capacity.cpu > cpu("64")}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
        advice="Often `||` was meant for `&&`, or a bound stands on the wrong side. Remove the document if it is not needed.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: large}
            spec:
              match: {condition: node.capacity.cpu > cpu("64")}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
    ),
    Code.written(
        "KP304",
        "rule never reached",
        explanation="""
            Wherever this rule applies, another rule of the same bundle applies too and outranks it. A rule that
            overrides one of an extended pack is no such case: that is what extending is for.
            """,
        why="Whoever edits the rule expects an effect and gets none.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: everywhere}
            spec:
              precedence: 10
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: colocated}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              target: {cel: node.capacity.cpu * percent(50)}
            """,
        advice="Remove the rule, raise its `precedence`, or narrow the match of the one that outranks it.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: everywhere}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: colocated}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              target: {cel: node.capacity.cpu * percent(50)}
            """,
    ),
    Code.written(
        "KP305",
        "unknown parameter",
        explanation="""
            An expression reads `parameters.x`, and no document of this kind and subject declares a parameter `x`, the
            packs below included.
            """,
        why="The value would be missing every time.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {share: {type: percent, value: 65%}}
              target: {cel: node.capacity.cpu * parameters.shares}
            """,
        advice="Take the suggested name, or declare the parameter under `spec.parameters`.",
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
        "KP306",
        "parameter types disagree",
        explanation="""
            Two documents give the same parameter values of different types or units, or a value does not have the type
            that the parameter declares.
            """,
        why="""
            The expressions that read the parameter are checked once, for one type. With another one they would fail on
            just those nodes that the other document matches.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {reserve: {type: percent, value: 2Gi}}
              target: {cel: node.capacity.cpu * parameters.reserve}
            """,
        advice="Write the value in the declared unit; the note shows where the type comes from.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {reserve: {type: percent, value: 60%}}
              target: {cel: node.capacity.cpu * parameters.reserve}
            """,
    ),
    Code.written(
        "KP307",
        "reference to nothing",
        explanation="""
            A document names a class, band, plugin, decision or another document that neither the bundle nor the
            packs below it define.
            """,
        why="The rule would wait for a pod of a band that no pod can have, or call a plugin that does not exist.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: gold}
            spec:
              value: GOLD
              permittedBands: [prod, midd]
              defaultBand: prod
            """,
        advice="Take the suggested name, or define what is missing.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: QoSClass
            metadata: {name: gold}
            spec:
              value: GOLD
              permittedBands: [prod, mid]
              defaultBand: prod
            """,
    ),
    Code.written(
        "KP308",
        "unused variable",
        severity=Severity.WARNING,
        explanation="A variable is defined and no expression of the document reads it.",
        why="It is left over from a change, or the expression that should read it says something else.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: protected, expression: node.usage.prod.cpu + node.usage.system.cpu}
              target: {cel: node.capacity.cpu * percent(65) - node.usage.prod.cpu}
            """,
        advice="Use it, or remove it.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: protected, expression: node.usage.prod.cpu + node.usage.system.cpu}
              target: {cel: node.capacity.cpu * percent(65) - variables.protected}
            """,
    ),
    Code.written(
        "KP309",
        "name defined twice in one document",
        explanation="""
            A list whose elements have names (variables, filters, scores, functions) has two of the same name.
            """,
        why="An expression or an override that uses the name could mean either.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: protected, expression: node.usage.prod.cpu}
                - {name: protected, expression: node.usage.system.cpu}
              target: {cel: node.capacity.cpu * percent(65) - variables.protected}
            """,
        advice="Rename one, or merge them.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              variables:
                - {name: protected, expression: node.usage.prod.cpu + node.usage.system.cpu}
              target: {cel: node.capacity.cpu * percent(65) - variables.protected}
            """,
    ),
    Code.written(
        "KP310",
        "library function calls itself",
        explanation="A function of a `Library` calls itself, directly or by way of others.",
        why="""
            Calls are replaced by their bodies when a revision is compiled, and the cost of every expression is bounded
            beforehand. A function that calls itself has neither an end nor a bound.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Library
            metadata: {name: arithmetic}
            spec:
              functions:
                - name: halved
                  parameters: [{name: amount, type: cpu}]
                  result: cpu
                  expression: 'amount > cpu("1") ? halved(amount / 2) : amount'
            """,
        advice="Write a loop over a list as a macro (`map`, `filter`, `exists`, `all`), or an explicit formula.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Library
            metadata: {name: arithmetic}
            spec:
              functions:
                - name: halved
                  parameters: [{name: amount, type: cpu}]
                  result: cpu
                  expression: amount / 2
            """,
    ),
    Code.written(
        "KP311",
        "required decision nowhere set",
        explanation="""
            A component always needs this value, and no document of the bundle or of the packs below gives it: an end of
            a band's range, or a parameter that is declared without a value and not as optional.
            """,
        why="The component would have no answer on the first node or pod that it asks for.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000}
              default: 6500
              resources: {mode: Native}
            """,
        advice="Give the value, in this document or in another of the same kind and name; the message says which is missing.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PriorityBand
            metadata: {name: spot}
            spec:
              range: {from: 6000, to: 6999}
              default: 6500
              resources: {mode: Native}
            """,
    ),
    Code.written(
        "KP312",
        "nothing in a cluster acts on this field yet",
        explanation="""
            The field is checked, tested and compared like every other one, and simulations may act on it. In a cluster
            it changes nothing so far: the component that is to carry it out, which the message names, is still to come.

            Of this version there is no such field. The example is one of before the agent could stop pods.
            """,
        why="Who relies on such a field in a cluster relies on nothing.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: MemoryEviction
            metadata: {name: default}
            spec:
              conduct: {by: EvictionOrStop}
            """,
        advice="""
            Keep it, so that it holds as soon as its component is there, or remove it. This is a note: it fails no check,
            not even a strict one. The manual says of every field who acts on it.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: MemoryEviction
            metadata: {name: default}
            spec:
              enabled: true
            """,
        severity=Severity.NOTE,
    ),
    Code.written(
        "KP313",
        "may be a conflict",
        severity=Severity.WARNING,
        explanation="""
            Two rules of one rank set the same decision, and neither an input on which both matches hold was found, nor the
            proof that there is none: the note says what is too hard. Of a revision 40 pairs are asked about whose labels and
            numbers leave it open; where there are more, it is said once. This is a warning: `check --strict` fails.
            """,
        why="Where both apply, the name of the document decides.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: rack-a}
            spec:
              match: {condition: "node.name.upperAscii().lowerAscii() == node.name"}
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: rack-b}
            spec:
              match: {condition: "node.name.upperAscii().lowerAscii() != node.name.lowerAscii()"}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
        advice="""
            Say which one is meant to win with `precedence`, or select by labels.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: rack-a}
            spec:
              match: {nodes: {matchLabels: {rack: a}}}
              target: {cel: node.capacity.cpu * percent(65)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: rack-b}
            spec:
              match: {nodes: {matchLabels: {rack: b}}}
              target: {cel: node.capacity.cpu * percent(75)}
            """,
    ),
)
