"""Facts of a YARN NodeManager and of the batch resources that it shares with pods."""

from koordpolicy.language.cel.types import INT, STRING
from koordpolicy.language.facts.table import BASIC, Component, Components, Fact, Record, each

_OPERATOR: Components = frozenset({Component.YARN_OPERATOR})

YARN = Record(
    "yarn",
    "The YARN NodeManager of a node, as its ResourceManager knows it.",
    (
        Fact("nodeManager", STRING, "`host:port` by which the ResourceManager knows it.", _OPERATOR),
        Fact("state", STRING, "Its state, such as `RUNNING`.", _OPERATOR, usual="RUNNING"),
        Fact("containers", INT, "Containers that run on it.", _OPERATOR),
        *each("offered", BASIC, "{resource} that YARN may use there now, by its ResourceManager.", _OPERATOR),
        *each("used", BASIC, "{resource} that containers of YARN have there.", _OPERATOR),
        *each(
            "batch",
            BASIC,
            "Batch {resource} of the node before anything is deducted for schedulers outside Kubernetes.",
            _OPERATOR,
        ),
        *each(
            "others", BASIC, "Batch {resource} that further schedulers outside Kubernetes hold.", _OPERATOR
        ),
        *each(
            "free",
            BASIC,
            "`batch` less `others` and what pods request of it, at least nothing: the most that YARN is offered.",
            _OPERATOR,
        ),
    ),
)
