"""Which pairs of strategies undo each other, by what they say."""

import pytest

from koordpolicy.graph import Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import BARE, OWN

PACKS = "{name: HighNodeUtilization, enabled: true}"
SPREADS = "{name: LowNodeUtilization, enabled: true, load: {low: {cpu: 30%}, high: {cpu: 60%}}}"
BY_USE = "{name: LowNodeLoad, enabled: true, load: {low: {cpu: 30%}, high: {cpu: 70%}}}"


def profile(*strategies: str, name: str = "koord-descheduler", more: str = "{}") -> str:
    listed = "".join(f"    - {one}\n" for one in strategies)
    return (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: Descheduling\n"
        f"metadata: {{name: {name}}}\nspec:\n  parameters: {more}\n  strategies:\n{listed}"
    )


def packed(share: str) -> str:
    return f"{{packThresholds: {{value: {{cpu: {share}}}}}}}"


def within(strategy: str, field: str, expression: str) -> str:
    """The strategy with one more field."""
    return f'{strategy[:-1]}, {field}: {{cel: "{expression}"}}}}'


def of_pool(strategy: str, pool: str) -> str:
    return within(strategy, "nodes", f"node.labels[?'pool'].orValue('') == '{pool}'")


OWN_PACKING = (
    "{name: empty, candidates: true, relocating: {better: false}, "
    "release: {cel: node.requested.cpu < 2 * node.allocatable.cpu / 10}, "
    "takes: {cel: target.requested.cpu < SHARE * target.allocatable.cpu / 10}}"
)

OWN_BY_USE = OWN_PACKING.replace("requested.cpu", "usage.total.cpu")


COMPILER = pack_remembering()


def undone(*documents: str) -> list[str]:
    files = dict([BARE, *((f"{at}.yaml", text) for at, text in enumerate(documents))])
    found = COMPILER.compile(Layer(OWN, files)).found
    assert not found.has_errors, list(found)
    return [str(one.severity) for one in found if one.code == "KP417"]


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([profile(PACKS, SPREADS, more=packed("20%"))], id="in one document"),
        pytest.param([profile(PACKS, BY_USE, more=packed("20%"))], id="by use"),
        pytest.param(
            [profile(of_pool(PACKS, "a"), of_pool(SPREADS, "a"), more=packed("20%"))], id="on the same nodes"
        ),
        pytest.param([profile(of_pool(PACKS, "a"), SPREADS, more=packed("20%"))], id="one on all nodes"),
        pytest.param([profile(OWN_PACKING.replace("SHARE", "9"), SPREADS)], id="filled above the threshold"),
        pytest.param(
            [profile(OWN_PACKING.replace("SHARE", "9"), name="packing"), profile(SPREADS)],
            id="of two profiles",
        ),
        pytest.param([profile(OWN_BY_USE.replace("SHARE", "9"), BY_USE)], id="filled by use"),
    ],
)
def test_strategies_that_undo_each_other_are_found(documents: list[str]) -> None:
    assert undone(*documents) == ["warning"]


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([profile(PACKS, SPREADS)], id="nothing packed"),
        pytest.param(
            [profile(PACKS, SPREADS.replace("60%", "100%"), more=packed("20%"))], id="no node too full"
        ),
        pytest.param(
            [profile(PACKS, SPREADS.replace("high: {cpu: 60%}", "high: {}"), more=packed("20%"))],
            id="no thresholds",
        ),
        pytest.param(
            [profile(of_pool(PACKS, "a"), of_pool(SPREADS, "b"), more=packed("20%"))], id="on other nodes"
        ),
        pytest.param(
            [
                profile(
                    within(PACKS, "candidates", "pod.band == 'batch'"),
                    within(SPREADS, "candidates", "pod.band == 'prod'"),
                    more=packed("20%"),
                )
            ],
            id="other pods",
        ),
        pytest.param([profile(OWN_PACKING.replace("SHARE", "5"), SPREADS)], id="filled below the threshold"),
        pytest.param([profile(OWN_BY_USE.replace("SHARE", "5"), BY_USE)], id="filled below it by use"),
    ],
)
def test_strategies_that_cannot_are_not(documents: list[str]) -> None:
    assert undone(*documents) == []


def test_a_scheduler_that_is_asked_of_every_pod_is_taken_into_account() -> None:
    narrow = BY_USE.replace("70%", "60%")
    of_batch = within(narrow, "candidates", "pod.band == 'batch'")
    better = "relocating: {better: {cel: pod.band != 'prod'}}"
    assert undone(profile(narrow)) == ["note"]
    assert undone(profile(f"{narrow[:-1]}, relocating: {{better: false}}}}")) == ["warning"]
    assert undone(profile(f"{narrow[:-1]}, {better}}}")) == ["warning"]
    assert undone(profile(f"{of_batch[:-1]}, {better}}}")) == ["note"]
