"""Facts of a YARN NodeManager and of the batch resources that it shares with pods."""

from koordpolicy.language.cel.types import INT, STRING
from koordpolicy.language.facts.table import BASIC, Component, Components, Fact, Record, each

_MANAGER: Components = frozenset({Component.MANAGER})

YARN = Record(
    "yarn",
    "The YARN NodeManager of a node, as its ResourceManager knows it.",
    (
        Fact("nodeManager", STRING, "`host:port` by which the ResourceManager knows it.", _MANAGER),
        Fact("state", STRING, "Its state, such as `RUNNING`.", _MANAGER, usual="RUNNING"),
        Fact("containers", INT, "Containers that run on it.", _MANAGER),
        *each("offered", BASIC, "{resource} that YARN may use there now, by its ResourceManager.", _MANAGER),
        *each("used", BASIC, "{resource} that containers of YARN have there.", _MANAGER),
        *each(
            "batch",
            BASIC,
            "Batch {resource} of the node before anything is deducted for schedulers outside Kubernetes.",
            _MANAGER,
        ),
        *each("others", BASIC, "Batch {resource} that further schedulers outside Kubernetes hold.", _MANAGER),
        *each(
            "free",
            BASIC,
            "`batch` less `others` and what pods request of it, at least nothing: the most that YARN is offered.",
            _MANAGER,
        ),
    ),
)
