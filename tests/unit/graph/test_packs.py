"""Packs that a bundle extends: each is asked for once, as finding one can mean to read all that is known of it."""

import pytest

from koordpolicy.graph import Compiler, Layer

BELOW = {
    "koordinator": "[]",
    "ours": "[koordinator]",
    "site": "[ours, koordinator]",
    "ring": "[ring, bundle]",
}


def policies(name: str, extends: str | None) -> dict[str, str]:
    if extends is None:
        return {}
    head = "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    return {f"{name}/koordpolicy.yaml": f"{head}metadata: {{name: {name}}}\nspec: {{extends: {extends}}}\n"}


@pytest.mark.parametrize(
    ("extends", "asked", "unknown"),
    [
        (None, ["koordinator"], 0),
        ("[]", [], 0),
        ("[koordinator]", ["koordinator"], 0),
        ("[koordinator, koordinator]", ["koordinator"], 0),
        ("[site]", ["site", "ours", "koordinator"], 0),
        ("[koordinator, ours, site]", ["koordinator", "ours", "site"], 0),
        ("[ring]", ["ring"], 0),
        ("[koordinater]", ["koordinater", "koordinator"], 1),
        ("[koordinator, nowhere]", ["koordinator", "nowhere"], 1),
        ("[nowhere, koordinator]", ["nowhere", "koordinator"], 1),
    ],
)
def test_a_pack_is_asked_for_once(extends: str | None, asked: list[str], unknown: int) -> None:
    names: list[str] = []

    def find(name: str) -> Layer | None:
        names.append(name)
        return Layer(name, policies(name, BELOW[name])) if name in BELOW else None

    found = Compiler(find).compile(Layer("bundle", policies("bundle", extends))).found
    assert names == asked
    assert [one.code for one in found].count("KP110") == unknown
