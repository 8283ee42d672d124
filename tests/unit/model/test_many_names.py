"""A pod names a bounded number of labels and resources: each is looked up for all nodes."""

from typing import Any

import pytest

from koordpolicy.model.placement import MOST_LABEL_KEYS, read_placement
from koordpolicy.model.pod import MOST_RESOURCES, read_pod
from koordpolicy.model.reading import ObjectError
from tests.hostile.objects import pod


def asking(count: int) -> dict[str, Any]:
    """A pod whose node affinity names so many labels, over several terms and again and again."""
    made = pod("p1", node="")
    keys = [f"key-{at}" for at in range(count)]
    terms = [
        {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["a"]}]} for key in (*keys, *keys)
    ]
    made["spec"]["nodeSelector"] = {}
    made["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    return made


def with_resources(count: int) -> dict[str, Any]:
    """A pod whose containers name so many resources together."""
    made = pod("p1", node="")
    first, second = made["spec"]["containers"][:2]
    names = [f"example.com/r{at}" for at in range(count)]
    first["resources"] = {
        "requests": dict.fromkeys(names[::2], "1"),
        "limits": dict.fromkeys(names[::2], "1"),
    }
    second["resources"] = {"requests": dict.fromkeys(names[1::2], "1")}
    made["spec"] = {"containers": [first, second]}
    return made


def test_labels() -> None:
    assert len(read_placement(asking(MOST_LABEL_KEYS)).label_keys) == MOST_LABEL_KEYS
    with pytest.raises(ObjectError, match="node selectors name more than 64 labels"):
        read_placement(asking(MOST_LABEL_KEYS + 1))


def test_resources() -> None:
    assert read_pod(with_resources(MOST_RESOURCES)).containers
    with pytest.raises(ObjectError, match="containers name more than 64 resources"):
        read_pod(with_resources(MOST_RESOURCES + 1))
