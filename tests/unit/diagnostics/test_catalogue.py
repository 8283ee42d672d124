import re

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics.catalogue import CATALOGUE, GROUPS, Code, UnknownCodeError, page

CODES = list(CATALOGUE.values())


def documents(text: str) -> list[object]:
    return list(YAML(typ="safe", pure=True).load_all(text))


def test_codes_are_unique_and_ordered_within_their_hundred() -> None:
    everything = [code.code for group in GROUPS.values() for code in group]
    assert everything == sorted(set(everything))
    for group in GROUPS.values():
        assert len({code.code[:3] for code in group}) == 1, "one hundred a group"


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.code)
class TestEveryPage:
    def test_says_something_everywhere(self, code: Code) -> None:
        assert re.fullmatch(r"KP\d{3}", code.code)
        assert not code.title.endswith(".")
        assert len(code.title) <= 60
        for sentence in (code.explanation, code.why, code.advice):
            assert len(sentence) >= 20
            assert sentence[-1] in ".?", "prose ends with a full stop"
            assert "  " not in sentence

    def test_shows_a_bad_and_a_good_text(self, code: Code) -> None:
        assert code.example != code.remedy
        assert "\t" not in code.example + code.remedy
        assert max(len(line) for line in (code.example + "\n" + code.remedy).splitlines()) <= 100

    def test_its_remedy_is_made_of_policy_documents(self, code: Code) -> None:
        for document in documents(code.remedy):
            assert isinstance(document, dict)
            assert list(document) == ["apiVersion", "kind", "metadata", "spec"]
            assert document["apiVersion"] == "koordpolicy.io/v1alpha1"

    def test_is_printed_whole(self, code: Code) -> None:
        text = page(code.code, width=0)
        assert text.startswith(f"# {code.code}: {code.title}\n")
        assert text.endswith("```\n")
        for part in (code.explanation, code.why, code.advice, code.example, code.remedy):
            assert part in text


# What YAML itself refuses cannot be parsed here, and KP004's example unfolds to a million values.
UNREADABLE = {"KP002", "KP003", "KP004", "KP006"}


@pytest.mark.parametrize("code", [c for c in CODES if c.code not in UNREADABLE], ids=lambda code: code.code)
def test_examples_are_yaml(code: Code) -> None:
    assert documents(code.example)


def test_prose_is_wrapped_and_code_is_not() -> None:
    text = page("KP204")
    assert max(len(line) for line in text.splitlines() if "cel:" not in line) <= 80
    assert text.split() == page("KP204", width=0).split()
    assert CATALOGUE["KP204"].example in text


def test_a_code_is_found_in_any_case() -> None:
    assert page(" kp204 ") == page("KP204")


def test_an_unknown_code_suggests_the_nearest() -> None:
    with pytest.raises(
        UnknownCodeError, match=r"^there is no diagnostic code `KPP204`, did you mean `KP204`\?$"
    ):
        page("KPP204")
    with pytest.raises(UnknownCodeError, match=r"^there is no diagnostic code `nonsense`$"):
        page("nonsense")
