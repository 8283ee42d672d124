"""What documents of a kind have to say to have any effect."""

from collections.abc import Mapping
from types import MappingProxyType

NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AdmissionRule": ("require",),
        "CPUSuppress": ("target",),
        "Overcommit": ("cpu", "memory", "zone.cpu", "zone.memory"),
    }
)
"""Fields of a kind of which one at least must be said for each subject."""
