"""Images: how much of the pod's is on a node already."""

from collections.abc import Hashable
from typing import Final

from koordpolicy.algorithms.image_locality import image_scores
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.scheduler.plugins.base import Plugin, Said
from koordpolicy.scheduler.plugins.parameters import Parameters


def images_wanted(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """The pod's images and what stays the same while they are where they are; None when they are nowhere."""
    images = state.images
    if not images or not any(name in images for name in pod.images):
        return None
    return pod.images, images.version


def image_locality(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Scores:
    """The images of the pod that each node has."""
    known = nodes.state.images.present(pod.images, nodes.total)
    present = [(nodes.some(sizes), holders) for sizes, holders in known]
    return image_scores(present, nodes.total, len(pod.images), nodes.count)


IMAGE_LOCALITY: Final = Plugin(
    score=image_locality, row_only=False, cache_key=images_wanted, of_kubernetes=True
)
