"""A few changes in every run of the suite; `python -m tests.mutations` judges thousands."""

import pytest

from koordpolicy.graph.proof.draws import Draws
from tests.mutations.__main__ import bench, drawn
from tests.mutations.judge import BUNDLE, sources

COUNT = 12
OURS = [one.name for one in sources()].index(f"tests/mutations/{BUNDLE}")


def test_every_change_is_found_or_proved_to_change_nothing() -> None:
    ours, judged = bench(OURS), []
    for mutant in Draws(b"3").sample(list(ours.mutants), len(ours.mutants)):
        one = ours.judge(mutant)
        if one.says in ("differs", "equal", "gave up"):
            judged.append(one)
        if len(judged) == COUNT:
            break
    assert len(judged) == COUNT
    assert [one.wrong for one in judged if one.wrong] == []
    assert [(one.what, one.gave_up) for one in judged if one.says == "gave up"] == []
    assert sum(one.says == "differs" for one in judged) > COUNT // 2


def test_the_sources_are_the_pack_the_examples_the_guide_and_a_bundle_of_ours() -> None:
    names = {one.name.partition("/")[0] for one in sources()}
    assert names == {"policies", "examples", "guide", "tests"}


@pytest.mark.soak
def test_there_are_thousands_of_changes() -> None:
    assert len(drawn(1)) > 2_500
