"""A document with very many parameters compiles in a time that grows with their number, not with its square."""

import time

import pytest

from koordpolicy.graph import Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering

_A_WHILE = 60.0
"""Seconds of CPU, far above what is needed; comparing each name with each took minutes."""


def document(names: list[str], read: list[str]) -> str:
    parameters = "".join(f"    {name}: 1\n" for name in names)
    lists = [", ".join(f"parameters.{one}" for one in read[at : at + 300]) for at in range(0, len(read), 300)]
    variables = "".join(f"    - {{name: v{at}, expression: '[{one}]'}}\n" for at, one in enumerate(lists))
    return (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: default}\nspec:\n"
        f"  parameters:\n{parameters}"
        + (f"  variables:\n{variables}" if variables else "")
        + "  target: {cel: node.capacity.cpu * percent(65)}\n"
    )


def compiled(text: str) -> list[str]:
    began = time.process_time()
    found = pack_remembering().compile(Layer("bundle", {"a.yaml": text})).found
    assert time.process_time() - began < _A_WHILE
    return [one.help or "" for one in found if one.code == "KP305"]


def test_that_nothing_reads() -> None:
    names = [f"p{number}" for number in range(20_000)]
    assert len(compiled(document(names, []))) == 20_000


@pytest.mark.soak
def test_that_are_named_much_like_those_that_are_read() -> None:
    names = [f"abcdef{number:06d}" for number in range(6_000)]
    helps = compiled(document(names, names[:3_000]))
    assert len(helps) == 3_000
    # The first ones get advice; whoever has more of them has another trouble than slips.
    assert sum(one.startswith("did you mean") for one in helps) == 100
