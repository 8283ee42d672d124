"""Checks of meaning, one file a subject. A new check is a function here and a line in `CHECKS`."""

from collections.abc import Callable

from koordpolicy.graph.meaning.admitted import admitted
from koordpolicy.graph.meaning.amounts import amounts
from koordpolicy.graph.meaning.bands import bands
from koordpolicy.graph.meaning.classes import classes
from koordpolicy.graph.meaning.comparisons import comparisons
from koordpolicy.graph.meaning.descheduling import descheduling
from koordpolicy.graph.meaning.drawn import drawn
from koordpolicy.graph.meaning.empty import empty
from koordpolicy.graph.meaning.formulas import formulas
from koordpolicy.graph.meaning.gangs import gangs
from koordpolicy.graph.meaning.hooks import hooks
from koordpolicy.graph.meaning.map_names import map_names
from koordpolicy.graph.meaning.names import names
from koordpolicy.graph.meaning.orders import orders
from koordpolicy.graph.meaning.plugins import plugins
from koordpolicy.graph.meaning.policy_tests import policy_tests
from koordpolicy.graph.meaning.profiles import profiles
from koordpolicy.graph.meaning.quota_trees import quota_trees
from koordpolicy.graph.meaning.ranges import ranges
from koordpolicy.graph.meaning.required import required
from koordpolicy.graph.meaning.requirements import requirements
from koordpolicy.graph.meaning.rollouts import rollouts
from koordpolicy.graph.meaning.scores import scores
from koordpolicy.graph.meaning.slots import slots
from koordpolicy.graph.meaning.sort_keys import sort_keys
from koordpolicy.graph.meaning.switched_off import switched_off
from koordpolicy.graph.meaning.tunables import tunables
from koordpolicy.graph.meaning.usual_pods import usual_pods
from koordpolicy.graph.state import State

CHECKS: tuple[Callable[[State], None], ...] = (
    bands,
    classes,
    plugins,
    admitted,
    names,
    map_names,
    comparisons,
    required,
    rollouts,
    slots,
    sort_keys,
    ranges,
    orders,
    amounts,
    scores,
    requirements,
    policy_tests,
    empty,  # after those that find what is missing
    drawn,
    quota_trees,
    usual_pods,
    gangs,
    descheduling,
    hooks,
    tunables,
    switched_off,
    profiles,  # after those that find its filters wrong
    formulas,  # last: it runs what all the others have found sound
)
