"""One file a kind of input; the table of all."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.fuzz.target import Target
from tests.fuzz.targets.bundles import BUNDLES
from tests.fuzz.targets.cri import CRI
from tests.fuzz.targets.expressions import EXPRESSIONS
from tests.fuzz.targets.extender import EXTENDER
from tests.fuzz.targets.front import FRONT
from tests.fuzz.targets.http import HTTP
from tests.fuzz.targets.objects import OBJECTS
from tests.fuzz.targets.reviews import REVIEWS
from tests.fuzz.targets.trees import TREES
from tests.fuzz.targets.webhook import WEBHOOK
from tests.fuzz.targets.yaml import YAML

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            YAML,
            EXPRESSIONS,
            BUNDLES,
            OBJECTS,
            REVIEWS,
            EXTENDER,
            WEBHOOK,
            HTTP,
            FRONT,
            TREES,
            CRI,
        )
    }
)
"""By name, in the order in which `all` runs them."""
