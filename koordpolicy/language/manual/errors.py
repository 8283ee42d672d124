"""The page of errors: what an evaluation that fails does, kind by kind."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.language.kinds import KINDS
from koordpolicy.language.manual.markdown import code, table

_INTRODUCTION: Final = """# Errors in expressions

An evaluation fails where a label is not there, a fact is missing, a divisor is zero, a text is no number. `koordpolicy check`
foresees it and says what to write instead (KP215 to KP218 of the [diagnostics](diagnostics.md)). Where it happens all the
same, one object is concerned, and the answer is the safe one.

## Conditions

The condition of a document, of an exception or of an entry such as a filter (`match.condition`) means the same in every kind:

1. A label, annotation or other text of a map that is not there reads as empty, as in `labels[?'team'].orValue('')`. So a
   node without the label is no node of team `a`, and no exempt one either: what `check` proposes is what happens meanwhile.
2. If it fails all the same, the rule does not apply to this object, and the next one by rank does, or the default.
3. Of a requirement (`require`) both have to hold then, the rule's and what stands below it: what fulfils both is let
   through, anything else is refused, with the error. A slip neither switches a protection off nor refuses what fulfils it.

Selectors (`match.nodes`, `match.namespaces`, `match.pods`) never fail. A condition beyond its budget of cost is no such
failure: the decision fails.

What fails is counted (`koordpolicy_condition_errors_total`), named by file, line and column in `/statusz` and the log, and told
once by an Event on the PolicyRevision.

## Values and requirements

"""

VALUES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "AdmissionRule": (
            "an `enabled` that fails counts as true, an `enforcement` as `enforce`; a `reason` or `message` is left out",
            "the request is refused, with the error and the place",
        ),
        "ColocationProfile": ("the request fails, and the webhook's `failurePolicy` decides", "-"),
        "ProfileReconciliation": ("of a pod: the profile does not change it", "-"),
        "QuotaTree": ("the request fails, and the webhook's `failurePolicy` decides", "-"),
        "QuotaProfile": ("nothing is written for the profile", "-"),
        "Recommendation": (
            "of a pod: its use does not count; of a workload: what its object recommends stays",
            "-",
        ),
        "CPUTopology": (
            "of a pod: it waits, with the error; of a node: it has no rules of its own, and all who keep CPUs keep theirs",
            "-",
        ),
        "ReservationPolicy": (
            "of a Reservation: it is as its object says, in Koordinator's way; of a pod and one: the pod takes nothing from it",
            "-",
        ),
        "DeviceSharing": ("the request fails, and the webhook's `failurePolicy` decides", "-"),
        "Migration": (
            "of a pod: what is most careful holds, room first, one pod of its workload at a time; of all: no migration goes on",
            "the pod stays",
        ),
        "Descheduling": ("the profile, or the strategy, moves nothing in that round", "the pod stays"),
        "Overcommit": (
            (
                "what is published stays; without metrics `onMissing` decides. A fact that is missing means just that, so that "
                "formulas may read measurements as they are"
            ),
            "-",
        ),
        "MetricCollection": ("the node's NodeMetric stays as it is", "-"),
        "DeviceResource": ("what the node offers of these devices stays", "-"),
        "Amplification": (
            (
                "a `normalization` that fails leaves the node's annotation as it is; where another value fails, or a ratio is "
                "too small, the node is not amplified"
            ),
            "-",
        ),
        "NodeReservation": ("the node's annotation stays as it is", "-"),
        "YARNNode": ("what YARN is offered there stays, and what is kept from pods for it", "-"),
        "CPUSuppress": ("as `onMissing` says: what was decided last stays, or CPUs are given back", "-"),
        "CPUEviction": ("the manager leaves the node's NodeSLO as it is", "-"),
        "MemoryEviction": ("the manager leaves the node's NodeSLO as it is", "-"),
        "Prediction": ("nothing is reclaimed until it can be told", "-"),
        "CPUBurst": ("the manager leaves the node's NodeSLO as it is", "-"),
        "Isolation": ("the manager leaves the node's NodeSLO as it is", "-"),
        "SystemTuning": ("the manager leaves the node's NodeSLO as it is", "-"),
        "HostApplicationSet": ("nothing fails at run time: it has no expressions", "-"),
        "Interference": ("the rule does not hold of the pod: nothing is done", "-"),
        "Arbitration": ("nothing is written to files that are wanted by several", "-"),
        "ContainerHook": (
            (
                "nothing is written for the pod while it runs; where its runtime asks before it starts something, `failurePolicy` "
                "of the hook decides, and other hooks have their say"
            ),
            "-",
        ),
        "RuntimeHooks": ("what was told to the runtime proxy last stays", "-"),
        "SchedulingProfile": (
            (
                "a score counts 0 for the node; `queue.order` puts the pod last, back-offs are 1 s, 10 s and 5 min; an "
                "`enabled`, `weight` or parameter that fails fails the pod's attempt, which comes again after its back-off; a "
                "`reason` gives way to the filter's name and the error"
            ),
            "the node is refused for the pod, with the error",
        ),
        "GangScheduling": (
            (
                "a `gangOfPod` that fails is no gang; a gang whose parameters cannot be told waits until they can; what is asked of it "
                "as it stands counts as no, but for `rejectsTogether`; a PodGroup's status stays as it is"
            ),
            "-",
        ),
        "Rollout": (
            "the default holds",
            "the guard waits: while it cannot be told, the step is not left",
        ),
        "QoSClass": ("nothing fails at run time: classes are evaluated while compiling", "-"),
        "PriorityBand": ("nothing fails at run time: bands are evaluated while compiling", "-"),
    }
)
"""What a value and a requirement that fail do, by kind."""


def errors_page() -> str:
    """The page, ending with a line break."""
    rows = [(code(name), *VALUES[name]) for name in KINDS if name in VALUES]
    return (
        _INTRODUCTION
        + table(("kind", "a value that fails", "a requirement that fails"), rows)
        + "\nA PolicyException fails as the decision that it overrides, a function of a Library as the expression that "
        "calls it, a parameter as what reads it.\n"
    )
