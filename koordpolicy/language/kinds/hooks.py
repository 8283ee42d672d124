"""What is changed in the resources of pods and containers where they are started."""

from typing import Annotated

from koordpolicy.language.cel.types import CPU, DOUBLE, INT, MEMORY, STRING, list_of, map_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.forms import exactly
from koordpolicy.language.kinds.slots import Slot, Value

_POD = frozenset({"pod", "node", "now"})
_TEXTS = map_of(STRING, STRING)
_STAGES = ("RunPodSandbox", "CreateContainer", "UpdateContainer")
_WHILE_RUNNING = "Running"


class PodGroupSlots(PolicyModel):
    """The control group of the whole pod."""

    cpu_request: Annotated[
        Value, Slot(CPU, "CPU request that the pod's CPU shares stand for; 0 for the least.", roots=_POD)
    ] = None
    cpu_limit: Annotated[
        Value, Slot(CPU, "CPU that the pod may use at most; 0 and less: without limit.", roots=_POD)
    ] = None
    memory_limit: Annotated[
        Value, Slot(MEMORY, "Memory that the pod may use at most; negative: without limit.", roots=_POD)
    ] = None
    annotations: Annotated[
        Value,
        Slot(
            _TEXTS,
            "Annotations that its runtime gets of the pod beside those of the object, where it is asked to start it.",
            roots=_POD,
        ),
    ] = None


class ContainerGroupSlots(PolicyModel):
    """The control group of one container."""

    cpu_request: Annotated[
        Value, Slot(CPU, "CPU request that the container's CPU shares stand for; 0 for the least.")
    ] = None
    cpu_limit: Annotated[
        Value, Slot(CPU, "CPU that the container may use at most; 0 and less: without limit.")
    ] = None
    memory_limit: Annotated[
        Value, Slot(MEMORY, "Memory that the container may use at most; negative: without limit.")
    ] = None
    cpus: Annotated[
        Value,
        Slot(
            STRING,
            "Which CPUs it runs on: the pod's `Owned` ones, those of its zones that are shared or for best-effort work, all `Shared` ones, "
            "those of the `System`, whatever its parents have (`Inherited`), or those it has (`Untouched`).",
            choices=(
                "Owned",
                "SharedOfZones",
                "BestEffortOfZones",
                "Shared",
                "System",
                "Inherited",
                "Untouched",
            ),
        ),
    ] = None
    oom_score: Annotated[
        Value,
        Slot(
            INT,
            "How soon the kernel kills its processes where memory is short (`oom_score_adj`): the highest first.",
            minimum=-1000,
            maximum=1000,
        ),
    ] = None
    environment: Annotated[
        Value,
        Slot(
            _TEXTS,
            "Environment variables that it is created with, in place of its own of the same names; one that runs keeps those it has.",
            names=exactly("[A-Za-z_.-][A-Za-z0-9_.-]*"),
            named="a name of an environment variable, such as `OMP_NUM_THREADS`",
        ),
    ] = None
    annotations: Annotated[
        Value,
        Slot(_TEXTS, "Annotations that its runtime gets of the container, where it is asked to create it."),
    ] = None
    unified: Annotated[
        Value,
        Slot(
            _TEXTS,
            "Files of cgroup v2 that its runtime is to write as it creates or changes the container, such as `memory.high`.",
        ),
    ] = None


class ContainerHookSpec(PolicySpec):
    """What pods and containers get from the kernel, in place of what the runtime was asked for."""

    cpu_speed: Annotated[
        Value,
        Slot(
            DOUBLE,
            "How fast the node's CPUs are, compared with those that limits are meant for; quotas become smaller "
            "by that factor where it is above 1.",
            roots=_POD,
            default=1.0,
        ),
    ] = None
    writer: Annotated[
        Value,
        Slot(
            STRING,
            "As whom Arbitration knows what this hook says of shares, quotas and limits. Of hooks of one writer a later name goes over "
            "an earlier one.",
            choices=("batch-resources", "cpu-normalization", "cpuset"),
            roots=_POD,
            default="batch-resources",
        ),
    ] = None
    stages: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "When the hook speaks: where runtimes are asked to start or change something, and of what is `Running`, which the agent "
            "sees to by itself.",
            choices=(*_STAGES, _WHILE_RUNNING),
            roots=_POD,
            default=[*_STAGES, _WHILE_RUNNING],
        ),
    ] = None
    failure_policy: Annotated[
        Value,
        Slot(
            STRING,
            "What becomes of a container that is to be started while this hook cannot be decided: it starts without what the hook "
            "would say (`Ignore`), or it does not start (`Fail`), and the kubelet tries again.",
            choices=("Ignore", "Fail"),
            roots=_POD,
            default="Ignore",
        ),
    ] = None
    pod: Given[PodGroupSlots] = None
    """What the pod as a whole gets; what no rule says is left alone."""
    container: Given[ContainerGroupSlots] = None
    """What each of its containers gets; what no rule says is left alone."""


class RuntimeHooksSpec(PolicySpec):
    """How the agent takes part where container runtimes start pods."""

    stages: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "At which of their calls runtimes ask the agent, whatever single hooks say; at the others nothing is held up.",
            choices=_STAGES,
            default=list(_STAGES),
        ),
    ] = None
    failure_policy: Annotated[
        Value,
        Slot(
            STRING,
            "What a runtime proxy does while the agent does not answer: it starts pods as the kubelet wants them (`Ignore`), or "
            "none (`Fail`).",
            choices=("Ignore", "Fail"),
            default="Ignore",
        ),
    ] = None
