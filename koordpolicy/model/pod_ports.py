"""The ports of nodes that a pod takes."""

from dataclasses import dataclass
from typing import Final

from koordpolicy.model.protocol import RESTART_ALWAYS
from koordpolicy.model.reading import Json, integer, mapping, objects, text

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  # an address in an object, nothing listens there


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a node. The address 0.0.0.0 stands for all; any other text only for itself."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: "HostPort") -> bool:
        """Whether two pods on one node cannot have both."""
        return (
            self.protocol == other.protocol
            and self.port == other.port
            and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))
        )


def host_ports(pod: Json) -> tuple[HostPort, ...]:
    """The host ports of a pod's JSON: those of its containers and of its sidecars. Raises ObjectError."""
    spec = mapping(pod, "spec")
    found: dict[HostPort, None] = {}
    for container in objects(spec, "containers", "spec"):
        if container.get("ports"):
            _read(container, "spec.containers", found)
    for container in objects(spec, "initContainers", "spec"):
        if container.get("ports") and container.get("restartPolicy") == RESTART_ALWAYS:
            _read(container, "spec.initContainers", found)
    return tuple(found)


def _read(container: Json, at: str, found: dict[HostPort, None]) -> None:
    for port in objects(container, "ports", at):
        number = integer(port, "hostPort", f"{at}.ports") or 0
        if number > 0:
            protocol = text(port, "protocol", f"{at}.ports") or "TCP"
            address = text(port, "hostIP", f"{at}.ports") or ANY_ADDRESS
            found[HostPort(protocol, address, number)] = None
