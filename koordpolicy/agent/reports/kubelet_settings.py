"""What a kubelet's configuration says of CPUs and NUMA zones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.model.reading import NO_TEXT, ObjectError, text, texts

_STATIC: Final = "static"
_SINGLE: Final = "single-numa-node"
_POLICIES: Final[Mapping[str, str]] = MappingProxyType(
    {"restricted": "Restricted", "best-effort": "BestEffort"}
)
_SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pod": "SingleNUMANodePodLevel",
        "container": "SingleNUMANodeContainerLevel",
        "": "SingleNUMANodeContainerLevel",
    }
)
_NONE: Final = "None"


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """The policies of the CPU manager (`none`, `static`) and of the topology manager, the latter as NodeResourceTopology
    names it; `reserved_cpus` are those that the kubelet keeps for the system.
    """

    cpu_manager: str = "none"
    cpu_manager_options: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    reserved_cpus: str = ""
    topology_policy: str = _NONE

    @property
    def places_cpus(self) -> bool:
        """Whether the kubelet gives CPUs to containers by itself."""
        return self.cpu_manager == _STATIC


def read_kubelet_settings(configuration: Mapping[str, Any]) -> KubeletSettings:
    """The settings in a `KubeletConfiguration`. Raises ObjectError with the place of what is malformed."""
    scope, policy = text(configuration, "topologyManagerScope"), text(configuration, "topologyManagerPolicy")
    if policy == _SINGLE:
        if scope not in _SCOPES:
            raise ObjectError(f"topologyManagerScope: `{scope}` is neither pod nor container")
        told = _SCOPES[scope]
    else:
        told = _POLICIES.get(policy, _NONE)
    return KubeletSettings(
        text(configuration, "cpuManagerPolicy") or "none",
        texts(configuration, "cpuManagerPolicyOptions", ""),
        text(configuration, "reservedSystemCPUs"),
        told,
    )
