"""Marks of what may be tuned: read, refused with place and remedy, and changed in the text alone."""

import pytest

from koordpolicy.diagnostics import Diagnostics, Fix
from koordpolicy.graph.tunables import Tunable, tunables_of
from koordpolicy.language.documents import Lines, read_documents
from koordpolicy.language.documents.edits import applied

TEXT = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata:
  name: mine
  annotations:
    koordpolicy.io/tunable: |
      # what may change
      MARK
spec:
  parameters:
    threshold: {type: percent, value: '65%'}   # quoted
    plain: 0.50   # a number
    spread: &anchor 5
    alias: *anchor
  growth:
    step: 10%  # a round gives back so much
  rules: [{name: one, weight: 3}]
"""


def marks(mark: str) -> tuple[str, list[Tunable], Diagnostics]:
    text = TEXT.replace("MARK", mark)
    found = Diagnostics()
    (document,) = read_documents("a.yaml", text, Diagnostics())
    return text, tunables_of(document, found), found


@pytest.mark.parametrize(
    ("mark", "present", "steps", "before", "after"),
    [
        ("parameters.threshold: 40% to 90% by 5%", "65%", 10, "value: '65%'}   # quoted", "value: '90%'}   # quoted"),
        ("parameters.plain: 0.1 to 0.9 by 0.1", "0.5", 8, "0.50   # a number", "0.9   # a number"),
        ("growth.step: 5% to 20% by 2.5%", "10%", 6, "step: 10%  # a", "step: 20%  # a"),
        ("rules.0.weight: 1 to 10 by 4", "3", 2, "weight: 3}", "weight: 9}"),
    ],
)  # fmt: skip
def test_a_value_is_changed_in_its_place_alone(
    mark: str, present: str, steps: int, before: str, after: str
) -> None:
    text, (one,), found = marks(mark)
    assert not list(found)
    assert (one.present, one.steps) == (present, steps)
    span, written = one.edit(one.steps)
    changed, done = applied(Lines("a.yaml", text), [Fix("", span, written)])
    assert len(done) == 1
    assert changed == text.replace(before, after)
    assert changed != text


def test_steps_are_exact_and_the_present_one_is_known() -> None:
    _, (one,), _ = marks("parameters.plain: 0.1 to 0.9 by 0.1")
    assert [one.written(step) for step in (0, 2, 8)] == ["0.1", "0.3", "0.9"]
    assert one.present_step == 4
    _, (between,), _ = marks("rules.0.weight: 1 to 10 by 4")
    assert between.present_step is None


@pytest.mark.parametrize(
    ("mark", "column", "said"),
    [
        ("parameters.treshold: 40% to 90% by 5%", 7, "did you mean `threshold`?"),
        ("parameters.threshold: 0.4 to 90% by 5%", 29, "write `0.4%`"),
        ("parameters.threshold: 40% to 90% by 0%", 43, "above 0"),
        ("parameters.threshold: 90% to 40% by 5%", 29, "a step at least"),
        ("parameters.plain: 0 to 9 by 0.000001", 35, "greater step"),
        ("parameters.threshold: 40%..90%", 7, "write `parameters.NAME"),
        ("parameters.alias: 1 to 9 by 1", 7, "write the value there itself"),
        ("growth: 1 to 9 by 1", 7, "as a number with its unit"),
        ("rules.7.weight: 1 to 9 by 1", 7, "stands in this document"),
    ],
)
def test_a_mark_that_means_nothing_is_told_with_its_place(mark: str, column: int, said: str) -> None:
    _, made, found = marks(mark)
    (problem,) = found
    assert not made
    assert problem.code == "KP420"
    assert (problem.span.start.line, problem.span.start.column) == (8, column)
    assert said in (problem.help or "")


def test_a_value_is_marked_once() -> None:
    line = "growth.step: 5% to 20% by 5%"
    _, made, found = marks(f"{line}\n      {line}")
    assert len(made) == 1
    assert [one.code for one in found] == ["KP420"]
