"""The kind on gangs: which pods run together or not at all, and how they are placed."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, DYN, INT, STRING, list_of, map_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_WHERE = frozenset({"namespaceObject", "now"})
_ALONE: frozenset[str] = frozenset()
_POD = _WHERE | {"pod"}
_DECLARED = _WHERE | {"gangDeclaration"}
_GANG = _WHERE | {"gang"}
_PHASE = _WHERE | {"podGroup"}


class GangQueue(PolicyModel):
    """In which order gangs, and the pods of each, are tried."""

    one_enters: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether one pod waits in the queue for all of its gang, and of those placed together with it.",
            roots=_GANG,
            default=False,
        ),
    ] = None
    finishes_first: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods are tried before all others whose gang is bound in part, as after the end of a scheduler in between.",
            roots=_GANG,
            default=True,
        ),
    ] = None
    starves: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether other gangs of no higher priority hold back for this one, so that room for all of it gathers.",
            roots=_GANG,
            default=False,
        ),
    ] = None


_KEYS = ("MostExisting", "FewestExisting", "LeastRoom", "MostRoom", "HighestScore", "LowestScore")


class GangGathering(PolicyModel):
    """How gangs are gathered in the network of the cluster, as the ClusterNetworkTopology `default` describes it."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a node is planned for each of its pods, all within one place, before the first is placed; where there is no "
            "such plan none of them is.",
            roots=_DECLARED,
            default=False,
        ),
    ] = None
    must_gather: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Layers in one place of which all its pods have to be; the deepest counts. None for the whole cluster.",
            roots=_DECLARED,
        ),
    ] = None
    must_share: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Node labels of which the nodes of all its pods have to have one value, those of its pods that are placed already among "
            "them; where no value has room for all of them none is placed. It needs no network and no `enabled`.",
            roots=_DECLARED,
        ),
    ] = None
    prefer_share: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "The same as a wish: where no value has room for all of them, its pods are placed as if these labels were not named, and "
            "nobody is displaced for their sake.",
            roots=_DECLARED,
        ),
    ] = None
    multiples: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "How many of its pods a place takes at a time, by layer; it holds within the place that is chosen.",
            roots=_DECLARED,
        ),
    ] = None
    candidates: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "What the deepest places that take all of them are compared by, in this order; pods that are there and room from the "
            "place up to the whole cluster. The name decides last.",
            choices=_KEYS,
            roots=_DECLARED,
        ),
    ] = None
    filling: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "What places within the chosen one are compared by, the first being filled first.",
            choices=_KEYS,
            roots=_DECLARED,
        ),
    ] = None
    counts_members: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether its own pods count as being there already where room for them is sought, as in Koordinator.",
            roots=_DECLARED,
            default=False,
        ),
    ] = None
    status_every: Annotated[
        Value,
        Slot(
            DURATION,
            "How often the places are told in the status of the ClusterNetworkTopology, if they have changed.",
            roots=_ALONE,
            default="10s",
        ),
    ] = None


class GangPhases(PolicyModel):
    """What is written into the status of PodGroup objects."""

    phase: Annotated[Value, Slot(STRING, "The phase of a PodGroup.", roots=_PHASE)] = None
    settled: Annotated[
        Value,
        Slot(BOOL, "Whether a PodGroup is left as it is from now on.", roots=_PHASE, default=False),
    ] = None
    workers: Annotated[
        Value,
        Slot(INT, "PodGroups that are written at a time.", roots=_ALONE, minimum=1, maximum=64, default=1),
    ] = None
    retry_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How much time passes at least after a write that failed; more where it fails again.",
            roots=_ALONE,
            default="1s",
        ),
    ] = None


class GangPreemption(PolicyModel):
    """Whom gangs displace that fit nowhere."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether others go for a gang that fits nowhere, so that all its pods fit; `pod` is the one that found no node.",
            roots=_GANG | {"pod"},
            default=False,
        ),
    ] = None
    eligible: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod on a node may go for a pod of a gang.",
            roots=_POD | {"victim"},
        ),
    ] = None
    whole_gangs: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether all pods of its gang that have a node go with a pod, or it stays where one of them may not go.",
            roots=_POD | {"victim"},
            default=False,
        ),
    ] = None
    spares_budgets: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods stay first, wherever they can, whose going breaks a disruption budget.",
            roots=_GANG,
            default=False,
        ),
    ] = None
    job: Annotated[
        Value,
        Slot(
            STRING,
            "What a pod on a node is a part of; parts of one thing cost as much as one of them. Empty for none.",
            roots=_WHERE | {"victim"},
        ),
    ] = None
    importance: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the pods that may go, the first deciding first; the pod with the smallest keys stays wherever it can.",
            combine=Combine.ORDER,
            roots=_WHERE | {"victim"},
            many=True,
        ),
    ] = None


class GangSchedulingSpec(PolicySpec):
    """Which pods run together or not at all, and how they are placed."""

    gang_of_pod: Annotated[
        Value, Slot(STRING, "Name of the gang that a pod belongs to; empty for none.", roots=_POD)
    ] = None
    declared_by: Annotated[
        Value,
        Slot(
            STRING,
            "What says how the gang of a pod is placed: a `PodGroup` object of that name, which may come later, or the first `Pod` "
            "that says enough.",
            choices=("PodGroup", "Pod"),
            roots=_POD,
            default="Pod",
        ),
    ] = None
    initialised: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether enough is said of the gang to place it; its pods wait for that.",
            roots=_DECLARED,
            default=True,
        ),
    ] = None
    minimum: Annotated[
        Value, Slot(INT, "How many of its pods have to run together.", roots=_DECLARED, default=1)
    ] = None
    total: Annotated[
        Value, Slot(INT, "How many pods it has in all; told, and not acted on.", roots=_DECLARED)
    ] = None
    mode: Annotated[
        Value,
        Slot(
            STRING,
            "`Strict`: where one of its pods does not fit, all that wait give their nodes back at once. `NonStrict`: at the end of the "
            "round.",
            choices=("Strict", "NonStrict"),
            roots=_DECLARED,
            default="Strict",
        ),
    ] = None
    match_policy: Annotated[
        Value,
        Slot(
            STRING,
            "Which pods count for the minimum: those that wait (`only-waiting`), those that are bound as well "
            "(`waiting-and-running`), or none any more once one was bound (`once-satisfied`).",
            choices=("once-satisfied", "only-waiting", "waiting-and-running"),
            roots=_DECLARED,
            default="once-satisfied",
        ),
    ] = None
    waiting_time: Annotated[
        Value,
        Slot(DURATION, "How long a pod waits on its node for the others.", roots=_DECLARED, default="600s"),
    ] = None
    groups: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "The gangs that are placed together, or not at all, this one among them, as `NAMESPACE/NAME`; none for this one alone.",
            roots=_DECLARED,
        ),
    ] = None
    most_together: Annotated[
        Value,
        Slot(
            INT,
            "How many gangs `groups` may name at most. Of a gang that names more nothing is read: its pods are not tried, and say so. "
            "Each step of a pod looks at all gangs that are placed together with its own.",
            roots=_DECLARED,
            minimum=1,
            maximum=1000,
            default=200,
        ),
    ] = None
    across_namespaces: Annotated[
        Value,
        Slot(
            STRING,
            "Which gangs of other namespaces go with it of those that `groups` names: those that name it as well (`Mutual`), or all "
            "(`Named`). Pods of those that go with it are tried in its rounds, give their nodes back and are bound with it; for all "
            "others it waits, and nothing becomes of them.",
            choices=("Mutual", "Named"),
            roots=_DECLARED,
            default="Mutual",
        ),
    ] = None
    complete: Annotated[
        Value,
        Slot(BOOL, "Whether enough of its pods are there to try to place it.", roots=_GANG, default=True),
    ] = None
    satisfied: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether enough of its pods have a node; once that holds of all gangs that are placed together, all that wait are bound.",
            roots=_GANG,
            default=True,
        ),
    ] = None
    free: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether its pods are placed one by one from now on, as pods without a gang are.",
            roots=_GANG,
            default=False,
        ),
    ] = None
    rejects_together: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether all that wait give their nodes back where one of its pods does not fit, or does not get there.",
            roots=_GANG,
            default=True,
        ),
    ] = None
    placement: Annotated[
        Value,
        Slot(
            STRING,
            "`OneByOne`: its pods are decided on one after another, and wait for each other on their nodes. `AtOnce`: all that it "
            "needs are decided on in one go, and where they do not all fit none of them has held anything.",
            choices=("OneByOne", "AtOnce"),
            roots=_GANG,
            default="OneByOne",
        ),
    ] = None
    queue: Given[GangQueue] = None
    """In which order gangs, and the pods of each, are tried."""
    network: Given[GangGathering] = None
    """How gangs are gathered in the network of the cluster."""
    phases: Given[GangPhases] = None
    """What is written into the status of PodGroup objects."""
    preemption: Given[GangPreemption] = None
    """Whom gangs displace that fit nowhere."""
