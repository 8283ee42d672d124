"""Edited policies are compiled where they can do no harm."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from koordpolicy.console.playground import LIMITS, Playground
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.graph import Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import OWN
from koordpolicy.runtime.trial.client import start_trials
from koordpolicy.runtime.trial.limits import TrialLimits

BUNDLE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: ours}
spec: {extends: [koordinator]}
"""
POOL = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {{name: pool}}
spec:
  parameters: {{{parameter}: 75%}}
"""
CONDITIONAL = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: poolNUMBER}
spec:
  match: {condition: "node.labels[?'a'].orValue('b') > 'NUMBER' || node.labels[?'c'].orValue('') < 'NUMBER'"}
  parameters: {threshold: 75%}
"""
FILES = {"koordpolicy.yaml": BUNDLE}


@contextmanager
def playground(limits: TrialLimits = LIMITS) -> Iterator[Playground]:
    """It, with a process that compiles for it."""
    trials = start_trials(limits)
    assert trials is not None
    compiler = pack_remembering()
    with trials:
        live = compiler.compile(Layer(OWN, FILES)).graph
        assert live is not None
        yield Playground(FILES, live, compiler, trials)


def test_what_is_edited_is_compiled_elsewhere_with_the_same_findings() -> None:
    with playground() as one:
        assert one.check({})["same"]
        good = one.check({"pool.yaml": POOL.format(parameter="threshold")})
        assert (good["compiles"], good["same"], good["problem"]) == (True, False, "")
        bad = {"pool.yaml": POOL.format(parameter="treshold")}
        told = one.check(bad)
        assert (told["compiles"], told["problem"]) == (False, "")
        (finding,) = [found for found in told["findings"] if found["severity"] == "error"]
        assert (finding["code"], finding["file"], finding["from"][0]) == ("KP305", "pool.yaml", 5)
        aside = pack_remembering().compile(Layer(OWN, {**FILES, **bad}))
        assert [found["message"] for found in told["findings"]] == [
            found.message for found in sorted(aside.found, key=lambda found: found.order)
        ]


def test_what_takes_too_much_is_ended_and_says_so() -> None:
    heavy = "---\n".join(CONDITIONAL.replace("NUMBER", str(number)) for number in range(800))
    with playground(TrialLimits(cpu=1.0, by_flags=False)) as one:
        told = one.check({"pool.yaml": heavy})
        assert (told["compiles"], told["findings"]) == (False, [])
        assert "it takes more than 1 s of CPU time" in told["problem"]
        assert "--" not in told["problem"]  # the console has no flags for it
        with pytest.raises(CannotAnswer, match="it takes more than 1 s"):
            one.decisions({"pool.yaml": heavy}, None, None, "CPUSuppress", "node")  # type: ignore[arg-type]


def test_what_could_stand_at_an_offset_is_that_of_the_language_server() -> None:
    with playground() as one:
        text = "# 😀\n" + POOL.format(parameter="thr")
        told = one.complete("pool.yaml", text, text.index("thr") + 3)
        assert text[told["from"] : told["to"]] == "thr"
        assert "threshold" in [offer["name"] for offer in told["offers"]]
        assert one.complete("pool.yaml", "", 0)["offers"]
        with pytest.raises(CannotAnswer, match="`offset` is a number from 0 to 2"):
            one.complete("pool.yaml", "ab", 3)
        with pytest.raises(CannotAnswer, match=r"more than 40,000 characters"):
            one.complete("pool.yaml", " " * 40_001, 0)


def test_names_of_edited_policies_are_completed_once_they_compiled() -> None:
    band = """\
apiVersion: koordpolicy.io/v1alpha1
kind: QoSClass
metadata: {name: zz}
spec: {permittedBands: [batch]}
"""
    text = "apiVersion: koordpolicy.io/v1alpha1\nkind: ColocationProfile\nmetadata: {name: a}\nspec:\n  qosClass: "
    with playground() as one:
        before = [offer["name"] for offer in one.complete("a.yaml", text, len(text))["offers"]]
        assert "be" in before
        assert "zz" not in before
        told = one.check({"zz.yaml": band})
        assert told["compiles"], told
        assert "zz" in [offer["name"] for offer in one.complete("a.yaml", text, len(text))["offers"]]


@pytest.mark.parametrize("opened", ["[", "{", "{a: [", "- ", "[\n"])
def test_what_is_nested_without_end_holds_nobody_up(opened: str) -> None:
    text = opened * (39_000 // len(opened))
    with playground() as one:
        one.complete("pool.yaml", "", 0)  # what is live is compiled
        began = time.thread_time()
        assert one.complete("pool.yaml", text, len(text))["offers"] == []
        assert time.thread_time() - began < 5.0  # that of open brackets took ten times as long


def test_nothing_is_offered_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with playground() as one:
        assert one.complete("pool.yaml", "", 0)["offers"]
        monkeypatch.setattr("koordpolicy.console.playground._PATIENCE", 0)
        assert one.complete("pool.yaml", "", 0)["offers"] == []
