"""What a scheduling profile says beside a plugin must have an effect."""

import pytest

from koordpolicy.language.kinds.plugins import PLUGINS as NAMES
from koordpolicy.scheduler.plugins import PLUGINS
from tests.unit.graph.policies_text import codes, document

ROOM = "{name: room, require: {cel: node.free.cpu >= pod.request.cpu}}"
"""Without it the profile would be warned of."""


def profile(entry: str) -> str:
    return document(
        "SchedulingProfile", "p", f"  schedulerName: mine\n  filters:\n    - {ROOM}\n    - {entry}\n"
    )


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("{name: a, plugin: NodeName}", []),
        ("{name: a, plugin: NodeName, enabled: {cel: pod.band == 'x'}}", []),
        ("{name: a, match: {condition: 'true'}, require: {cel: node.unschedulable}}", []),
        ("{name: a, plugin: NodeNam}", ["KP307"]),
        ("{name: a, plugin: NodeResourcesBalancedAllocation}", ["KP307"]),
        ("{name: a}", ["KP311"]),
        ("{name: a, plugin: NodeName, match: {condition: 'true'}}", ["KP107"]),
        ("{name: a, plugin: NodeName, parameters: {x: 1}}", ["KP305"]),
        ("{name: a, require: {cel: node.unschedulable}, parameters: {x: 1}}", ["KP305"]),
    ],
)
def test_filters(entry: str, found: list[str]) -> None:
    assert codes(profile(entry)) == found


def test_another_document_may_switch_a_plugin_off_or_set_its_parameters() -> None:
    pack = profile("{name: fit, plugin: NodeResourcesFit}")
    over = profile("{name: fit, enabled: false, parameters: {ignoredResources: [example.com/x]}}")
    assert codes(over, pack=pack) == []


def test_the_names_that_policies_may_use_are_those_that_the_scheduler_has() -> None:
    assert [name for name, one in NAMES.items() if one.filters or one.scores or one.preempts] == list(PLUGINS)
    for name, plugin in PLUGINS.items():
        assert NAMES[name].filters == (plugin.filter is not None or plugin.jobs is not None), name
        assert NAMES[name].scores == (plugin.score is not None or plugin.rank is not None), name
