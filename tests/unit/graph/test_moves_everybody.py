"""Which strategies move everybody: none that anything holds back, of pods, nodes, numbers or the scheduler."""

import pytest

from koordpolicy.graph import Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import BARE, OWN

COMPILER = pack_remembering()
ALL = "name: own, candidates: true, relocating: {better: false}"
SOME_NODES = "{cel: \"node.labels[?'pool'].orValue('') == 'old'\"}"


def found_in(strategy: str, more: str = "") -> list[str]:
    text = (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: Descheduling\nmetadata: {name: koord-descheduler}\n"
        f"spec:\n{more}  strategies:\n    - {{{strategy}}}\n"
    )
    found = COMPILER.compile(Layer(OWN, dict([BARE, ("own.yaml", text)]))).found
    assert not found.has_errors, list(found)
    return [one.code for one in found if one.code == "KP422"]


@pytest.mark.parametrize("more", ["", ", release: true", ", takes: true", ", nodes: true", ", enabled: true"])
def test_one_that_nothing_holds_back_is_told(more: str) -> None:
    assert found_in(ALL + more) == ["KP422"]


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param("name: own, candidates: true, release: true", id="the scheduler is asked, as is usual"),
        pytest.param(
            "name: own, candidates: true, relocating: {better: {cel: pod.band == 'prod'}}", id="of some pods"
        ),
        pytest.param(
            "name: own, candidates: {cel: pod.band == 'batch'}, release: true, relocating: {better: false}",
            id="some pods go",
        ),
        pytest.param(f"{ALL}, release: {SOME_NODES}", id="some nodes give pods away"),
        pytest.param(f"{ALL}, nodes: {SOME_NODES}", id="some nodes are looked at"),
        pytest.param(f"{ALL}, takes: {SOME_NODES.replace('node.', 'target.')}", id="to some nodes"),
        pytest.param(f"{ALL}, most: 1", id="so many of a node"),
        pytest.param(f"{ALL}, total: 5", id="so many in a round"),
        pytest.param(f"{ALL}, dryRun: true", id="nobody goes"),
        pytest.param(f"{ALL}, ended: true", id="pods that have ended"),
        pytest.param(f"{ALL}, enabled: false", id="off"),
        pytest.param(f"{ALL}, plugin: RemoveDuplicates", id="a plugin says who goes"),
    ],
)
def test_one_that_something_holds_back_is_not(strategy: str) -> None:
    assert found_in(strategy) == []


def test_one_of_a_profile_that_looks_at_some_nodes_is_not() -> None:
    assert found_in(ALL, f"  nodes: {SOME_NODES}\n") == []
