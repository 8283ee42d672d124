"""The calls of CRI v1 with one request and one answer: what is known to be none of several is handed on at half the cost."""

from typing import Final

_RUNTIME: Final = """
    Version RunPodSandbox StopPodSandbox RemovePodSandbox PodSandboxStatus ListPodSandbox CreateContainer StartContainer StopContainer
    RemoveContainer ListContainers ContainerStatus UpdateContainerResources ReopenContainerLog ExecSync Exec Attach PortForward
    ContainerStats ListContainerStats PodSandboxStats ListPodSandboxStats UpdateRuntimeConfig Status CheckpointContainer
    ListMetricDescriptors ListPodSandboxMetrics RuntimeConfig UpdatePodSandboxResources
"""
_IMAGES: Final = "ListImages ImageStatus PullImage RemoveImage ImageFsInfo"

UNARY: Final = frozenset(
    f"/runtime.v1.{service}/{name}"
    for service, names in (("RuntimeService", _RUNTIME), ("ImageService", _IMAGES))
    for name in names.split()
)
"""Of Kubernetes 1.36. Whatever is not here is handed on as a stream, which may be one of a single message."""
