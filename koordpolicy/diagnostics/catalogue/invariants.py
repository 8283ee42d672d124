"""KP8xx: invariants."""

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.value import Severity

INVARIANTS: tuple[Code, ...] = (
    Code.written(
        "KP801",
        "invariant does not hold",
        explanation="""
            An `Invariant` says what must hold of decisions on every input there can be. An input was found on which it
            does not; the engine was asked, so this is what the policies would do. The help names the facts of the input. Where
            `require` or `where` has no value although the decisions that it reads have one, as of a key that a map has not,
            that is a violation, too. Overflows count only of amounts that clusters have, as for KP217.
            """,
        why="A cluster will be in that state one day, and nobody looks at the formula then.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: room-for-the-system}
            spec:
              decisions: {target: CPUSuppress.target}
              require: decisions.target >= 0
            """,
        advice="""
            Correct the policy, or say in `where` on which inputs it is meant to hold. `koordpolicy prove NAME` shows the
            values of the decisions, too.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: room-for-the-system}
            spec:
              decisions: {target: CPUSuppress.target}
              require: decisions.target <= node.capacity.cpu
            """,
    ),
    Code.written(
        "KP802",
        "invariant is not proved",
        severity=Severity.WARNING,
        explanation="""
            Neither an input that violates the `Invariant` was found, nor a proof that there is none, within the budget that
            the message names. It says what the solver knows too little of. This is a warning: `check --strict` fails.
            """,
        why="What is not proved may be wrong on an input that was not tried.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: same-spelling}
            spec:
              decisions: {reason: AdmissionRule/permitted-bands.reason}
              require: decisions.reason.upperAscii().lowerAscii() == decisions.reason
            """,
        advice="""
            Say less in one Invariant, or allow more with `koordpolicy prove NAME --work N --inputs N`. Functions that change
            texts, and lists that are walked in several ways, are what is hardest to prove.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: never-silent}
            spec:
              decisions: {enforcement: AdmissionRule/permitted-bands.enforcement}
              require: decisions.enforcement in ['enforce', 'warn']
            """,
    ),
    Code.written(
        "KP803",
        "unknown name in an invariant",
        explanation="""
            An `Invariant` names a decision that the bundle and its packs do not have, or raises what is no number that
            its decisions may read.
            """,
        why="Nothing would be proved of what was meant.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: within-the-node}
            spec:
              decisions: {target: CPUSuppress.targets}
              require: decisions.target <= node.capacity.cpu
            """,
        advice="Take the suggested name. `koordpolicy graph` lists the decisions of a bundle.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: within-the-node}
            spec:
              decisions: {target: CPUSuppress.target}
              require: decisions.target <= node.capacity.cpu
            """,
    ),
    Code.written(
        "KP804",
        "invariant that says nothing",
        severity=Severity.WARNING,
        explanation="""
            What an Invariant requires is true whatever is decided, or its `where` leaves no input that there can be.
            """,
        why="""
            It is proved at once, and shows nothing of any decision.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: safe}
            spec:
              decisions: {target: CPUSuppress.target}
              require: "true"
            """,
        advice="""
            Compare `decisions.<name>` with a fact, a constant or another decision.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Invariant
            metadata: {name: safe}
            spec:
              decisions: {target: CPUSuppress.target}
              require: decisions.target <= node.capacity.cpu
            """,
    ),
)
