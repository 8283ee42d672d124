"""The stages of a pod's life at which hooks speak, by the words of policy."""

from enum import StrEnum
from typing import Final

from koordpolicy.cri.stages import HookStage


class Stage(StrEnum):
    """What a runtime is about to do; `RUNNING` is the agent's own round over what runs."""

    RUN_POD = "RunPodSandbox"
    CREATE = "CreateContainer"
    UPDATE = "UpdateContainer"
    RUNNING = "Running"


STAGE_OF: Final = {
    HookStage.PRE_RUN_POD: Stage.RUN_POD,
    HookStage.PRE_CREATE: Stage.CREATE,
    HookStage.PRE_UPDATE: Stage.UPDATE,
}
"""The word of policy for each question of a runtime proxy. Nothing follows from what is said at its other stages."""
