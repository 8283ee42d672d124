"""What webhooks ask of each revision, made before it decides: later it would hold up the reviews that come meanwhile."""

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.manager.webhooks.devices import devices
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.mutation import some_facts
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import Rules


def prepare_admission(graph: RuleGraph, now: int) -> None:
    """Make the programs of all profiles, rules and scopes, to be called aside; `now` in nanoseconds since 1970.

    A profile takes 3 ms the first time, so that a thousand would take the loop's next seconds.
    """
    graph = graph.at(Timestamp(now))
    Profiles(graph)
    Rules(graph)
    devices(graph)
    some_facts(graph)
    for webhook in WEBHOOKS:
        webhook.scope(graph)
