"""The examples of the manual: every kind has one, and `check` finds nothing in it."""

import pytest

from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.testing import run_tests
from koordpolicy.language.kinds import KINDS
from koordpolicy.language.manual.examples import EXAMPLES
from koordpolicy.runtime.policies.pack_cache import pack_remembering

BUNDLE = EXAMPLES["PolicyBundle"].replace("  tests: {minimumCoverage: 80}\n", "")
SOMETHING = EXAMPLES["CPUSuppress"]


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_kind_is_sound(kind: str, compiler: Compiler) -> None:
    others = {"PolicyBundle": SOMETHING, "CPUSuppress": BUNDLE}.get(kind, f"{BUNDLE}---\n{SOMETHING}")
    files = {"example.yaml": EXAMPLES[kind], "koordpolicy.yaml": others}
    compilation = compiler.compile(Layer("own", files))
    assert [f"{found.code} {found.message}" for found in compilation.found] == []
    assert compilation.graph is not None
    run = run_tests(compilation.graph, compilation.units)
    assert run.passed, [found.message for found in run.found]


def test_there_are_no_others() -> None:
    assert EXAMPLES.keys() == KINDS.keys()
