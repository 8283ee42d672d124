"""A few changes in every run of the suite; `python -m tests.mutations` judges thousands."""

from tests.mutations.__main__ import drawn
from tests.mutations.judge import Bench, sources

COUNT = 40


def test_every_change_is_found_or_proved_to_change_nothing() -> None:
    bench = Bench(sources()[-1])
    of_ours = [mutation for at, mutation in drawn(3) if at == len(sources()) - 1]
    judged = []
    for mutation in of_ours:
        one = bench.judge(mutation)
        if one.says in ("differs", "equal", "gave up"):
            judged.append(one)
        if len(judged) == COUNT:
            break
    assert len(judged) == COUNT
    assert [one.wrong for one in judged if one.wrong] == []
    assert [(one.mutation.what, one.gave_up) for one in judged if one.gave_up] == []
    assert sum(one.says == "differs" for one in judged) > COUNT // 2
