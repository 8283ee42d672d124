"""The stages at which hook servers are asked, by the names that Koordinator's proxy calls them by."""

from enum import StrEnum
from typing import Final

SERVICE: Final = "runtime.v1alpha1.RuntimeHookService"
REFUSED: Final = "FAILED_PRECONDITION"
"""gRPC's word by which a hook server of ours says that a call must not go on, whatever its failure policy."""
TTRPC_ENDPOINT: Final = "ttrpc-endpoint"
"""In an announcement, beside what Koordinator has there: where the same questions are answered over ttrpc."""


class HookStage(StrEnum):
    """Before or after which call of CRI hooks are asked."""

    PRE_RUN_POD = "PreRunPodSandbox"
    POST_STOP_POD = "PostStopPodSandbox"
    PRE_CREATE = "PreCreateContainer"
    PRE_START = "PreStartContainer"
    POST_START = "PostStartContainer"
    POST_STOP = "PostStopContainer"
    PRE_UPDATE = "PreUpdateContainerResources"

    @property
    def method(self) -> str:
        """The method of gRPC, with its service."""
        return f"/{SERVICE}/{self.method_name}"

    @property
    def method_name(self) -> str:
        """The method within its service."""
        return f"{self}Hook"

    @property
    def of_pod(self) -> bool:
        """Whether it is about a pod as a whole."""
        return self in (HookStage.PRE_RUN_POD, HookStage.POST_STOP_POD)
