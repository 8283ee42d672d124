"""Images: how much of the pod's is on a node already."""

from collections.abc import Hashable

from koordpolicy.mechanism.image_locality import image_scores
from koordpolicy.scheduler.mechanisms.base import Parameters, Said, Scores
from koordpolicy.scheduler.nodes import NodeView
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.surroundings import Surroundings


def images_wanted(pod: PodView, around: Surroundings, _said: Said) -> Hashable | None:
    """The pod's images and what stays the same while they are where they are; None when they are nowhere."""
    images = around.images
    if not images or not any(name in images for name in pod.images):
        return None
    return pod.images, images.version


def image_locality(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Scores:
    """The images of the pod that each node has."""
    known = nodes.around.images.present(pod.images, nodes.total)
    present = [(nodes.some(sizes), holders) for sizes, holders in known]
    return image_scores(present, nodes.total, len(pod.images), nodes.count)
