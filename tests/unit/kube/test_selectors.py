"""Label and field selectors in their wire forms."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Rejected
from koordpolicy.kube.selectors import (
    MAX_LENGTH,
    FieldRequirement,
    FieldSelector,
    is_label_key,
    is_label_value,
    label_text,
    parse_fields,
    parse_labels,
    selector_of,
)

keys = st.sampled_from(["app", "tier", "example.org/zone", "a.b_c-d"])
texts = st.sampled_from(["", "web", "db", "v1.2_3-x", "0"])
label_maps = st.dictionaries(keys, texts)
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": keys,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(texts, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
selectors = st.fixed_dictionaries(
    {}, optional={"matchLabels": label_maps, "matchExpressions": st.lists(expressions, max_size=3)}
)


def means(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """What a LabelSelector says, read straight from its definition."""
    answers = [labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()]
    for expression in selector.get("matchExpressions", []):
        value, wanted = labels.get(expression["key"]), expression.get("values", [])
        answers.append(
            {
                "In": value is not None and value in wanted,
                "NotIn": value is None or value not in wanted,
                "Exists": value is not None,
                "DoesNotExist": value is None,
            }[expression["operator"]]
        )
    return all(answers)


@given(selectors, label_maps)
def test_objects_and_wire_form_mean_the_same(selector: dict[str, Any], labels: dict[str, str]) -> None:
    read = selector_of(selector)
    assert read.matches(labels) is means(selector, labels)


@given(label_maps)
def test_a_missing_selector_matches_nothing_and_an_empty_one_all(labels: dict[str, str]) -> None:
    assert not selector_of(None).matches(labels)
    assert selector_of({}).matches(labels)
    assert parse_labels("").matches(labels)


@pytest.mark.parametrize(
    "text",
    [
        "app in web",
        "app in (web",
        "app in web)",
        "app notin",
        "a=b=c",
        "=web",
        "app=web,",
        ",app",
        "app,,tier",
        "app web",
        "!",
        "!app=web",
        "app=two words",
        "a/b/c=d",
        "-app",
        f"app={'x' * 64}",
        "app=-web",
        "x" * 64,
        "x" * (MAX_LENGTH + 1),
    ],
    ids=lambda text: text[:30],
)
def test_text_that_is_no_label_selector_is_rejected(text: str) -> None:
    with pytest.raises(Rejected):
        parse_labels(text)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabel": {"app": "web"}},
        {"matchLabels": ["app"]},
        {"matchLabels": {"app": 1}},
        {"matchLabels": {"not a key": "web"}},
        {"matchLabels": {"app": "not a value"}},
        {"matchExpressions": {"key": "app"}},
        {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["w*"]}]},
        {"matchExpressions": [{"key": "app", "operator": "In"}]},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]},
        {"matchExpressions": [{"operator": "Exists"}]},
    ],
    ids=str,
)
def test_objects_that_are_no_label_selector_are_rejected(selector: dict[str, Any]) -> None:
    with pytest.raises(Rejected):
        selector_of(selector)


def test_keys_and_values() -> None:
    assert all(map(is_label_key, ["a", "A-b_c.d", "example.org/x", "x" * 63, f"{'a' * 63}.b/c"]))
    assert not any(
        map(is_label_key, ["", "/", "a/", "/a", "a//b", "Example.org/x", "-a", "a-", "x" * 64, "ä", "a\n"])
    )
    assert all(map(is_label_value, ["", "a", "A-b_c.d", "x" * 63]))
    assert not any(map(is_label_value, ["a b", "-a", "a-", "x" * 64, "ä", "a/b", "a\n"]))


values = st.text(alphabet="ab=,\\ !.", max_size=8).map(str.strip)
requirements = st.builds(
    FieldRequirement, st.sampled_from(["metadata.name", "spec.nodeName"]), values, st.booleans()
)


@given(st.lists(requirements, max_size=3))
def test_field_selectors_survive_their_wire_form(wanted: list[FieldRequirement]) -> None:
    selector = FieldSelector(tuple(wanted))
    assert parse_fields(str(selector)) == selector


@given(values, values)
def test_field_selectors_compare_text(actual: str, wanted: str) -> None:
    obj = {"spec": {"nodeName": actual}}
    equal = FieldSelector((FieldRequirement("spec.nodeName", wanted),))
    other = FieldSelector((FieldRequirement("spec.nodeName", wanted, negated=True),))
    assert equal.matches(obj) is (actual == wanted)
    assert other.matches(obj) is (actual != wanted)
    assert equal.exact("spec.nodeName") == wanted
    assert other.exact("spec.nodeName") is None


def test_fields_of_other_types_compare_by_their_text() -> None:
    obj: dict[str, Any] = {"spec": {"unschedulable": True, "priority": 5, "host": None}, "status": "text"}
    assert parse_fields("spec.unschedulable=true,spec.priority==5,spec.host=,status.phase=").matches(obj)
    assert not parse_fields("spec.unschedulable=false").matches(obj)


@pytest.mark.parametrize(
    "text", ["spec.nodeName", "=x", "spec.nodeName>3", "a=b\\c", "a=\\", "x" * (MAX_LENGTH + 1)]
)
def test_text_that_is_no_field_selector_is_rejected(text: str) -> None:
    with pytest.raises(Rejected):
        parse_fields(text)


@given(selectors)
def test_a_selector_is_written_as_it_is_read(selector: dict[str, Any]) -> None:
    found = selector_of(selector)
    assert parse_labels(label_text(found)).requirements == found.requirements
