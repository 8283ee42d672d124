"""Conditions that come out the same whatever they are asked of."""

import pytest

from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.compiler import BASE
from koordpolicy.graph.expressions import typed
from koordpolicy.language.facts import ROOTS

NAMES = BASE.extended({name: root.type for name, root in ROOTS.items()})

CASES = (
    ("true", None, True),
    ("false", None, False),
    ("pod.name in []", None, False),
    ("!(pod.name in [])", None, True),
    ("pod.labels[?'team'].orValue('') in []", None, False),
    ("pod.labels['team'] in []", None, False),
    ("pod.name in ['a']", None, None),
    ("node.capacity.cpu < cpu('0')", None, False),
    ("node.capacity.cpu >= cpu('0')", None, True),
    ("node.free.cpu >= cpu('0')", None, None),
    ("node.capacity.pods < 0 || node.unschedulable in []", None, False),
    ("pod.priority > 5 && pod.priority < 3", None, False),
    ("pod.priority > 5 || pod.priority < 7", None, True),
    ("pod.?priority.orValue(0) > 3000000000", None, False),
    ("pod.?priority.orValue(0) < 3000000000", None, True),
    ("pod.labels[?'team'].orValue('') == 'a' && pod.labels[?'team'].orValue('') in ['b', 'c']", None, False),
    ("pod.labels[?'team'].orValue('') == 'a' && !('team' in pod.labels)", None, False),
    ("pod.labels[?'team'].orValue('a') == 'a' && !('team' in pod.labels)", None, None),
    ("pod.labels[?'team'].orValue('a') != 'a' && !('team' in pod.labels)", None, False),
    ("pod.labels[?'team'].orValue('') != 'a'", None, None),
    ("size(pod.name) > 4", None, None),
    ("operation == 'CREATE'", None, None),
    ("operation == 'CREATE'", ("DELETE",), False),
    ("operation != 'CREATE'", ("DELETE",), True),
    ("operation == 'CREATE'", ("CREATE", "UPDATE"), None),
    ("operation != 'UPDATE' || pod.name == oldPod.name", ("CREATE",), True),
)


@pytest.mark.parametrize(("text", "operations", "comes"), CASES)
def test_a_condition_comes_out_so(text: str, operations: tuple[str, ...] | None, comes: bool | None) -> None:
    node, problems = typed(text, NAMES)
    assert node is not None and not [one for one in problems if one.severity == "error"]
    assert outcome(node, operations or ()) is comes
