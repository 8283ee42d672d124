"""What the scheduler keeps of the cluster beside the rows of nodes: other pods, topology, images, volumes."""

from koordpolicy.scheduler.surroundings.kinds import Wanted
from koordpolicy.scheduler.surroundings.surroundings import Surroundings
from koordpolicy.scheduler.surroundings.terms import HeldTerm
from koordpolicy.scheduler.surroundings.volumes import Volumes

__all__ = ["HeldTerm", "Surroundings", "Volumes", "Wanted"]
