"""Images: which a pod needs, and which nodes have."""

from collections.abc import Mapping

from koordpolicy.model.reading import Json, integer, mapping, objects, sequence, text

_MOST_IMAGES = 1000
"""Images of a node that are looked at; kubelets report 50 unless told otherwise."""


def full_name(image: str) -> str:
    """An image's name with its tag: `latest` when it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def pod_images(pod: Json) -> tuple[str, ...]:
    """The images of a pod's init and other containers, one a container. Raises ObjectError."""
    spec = mapping(pod, "spec")
    return tuple(
        full_name(text(container, "image", f"spec.{key}"))
        for key in ("initContainers", "containers")
        for container in objects(spec, key, "spec")
    )


def node_images(node: Json) -> Mapping[str, int]:
    """Bytes by name of the images that a node's JSON reports. Raises ObjectError."""
    found: dict[str, int] = {}
    for number, image in enumerate(objects(mapping(node, "status"), "images", "status")):
        if number >= _MOST_IMAGES:
            break
        size = integer(image, "sizeBytes", "status.images") or 0
        for name in sequence(image, "names", "status.images"):
            if isinstance(name, str):
                found.setdefault(name, size)
    return found
