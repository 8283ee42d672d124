"""Short policy texts for tests of the graph."""

from koordpolicy.graph import Compilation, Layer, RuleGraph, compile_policies

HEAD = "apiVersion: koordpolicy.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
BUNDLE = HEAD.format(kind="PolicyBundle", name="test") + "  extends: []\n"


def document(kind: str, name: str, spec: str) -> str:
    """One document; `spec` is indented YAML."""
    return HEAD.format(kind=kind, name=name) + spec.strip("\n") + "\n"


def compiled(*documents: str, pack: str | None = None) -> Compilation:
    """Documents as one bundle, above a pack when one is given."""
    packs = {"below": Layer("below", {"below.yaml": pack})} if pack else {}
    bundle = BUNDLE.replace("[]", "[below]") if pack else BUNDLE
    files = {f"{at}.yaml": text for at, text in enumerate(documents)}
    return compile_policies(Layer("test", {"koordpolicy.yaml": bundle, **files}), packs.get)


def graph(*documents: str, pack: str | None = None) -> RuleGraph:
    """The graph of documents that must be right."""
    found = compiled(*documents, pack=pack)
    assert found.graph is not None, [f"{d.code} {d.span} {d.message}" for d in found.found]
    return found.graph


def codes(*documents: str, pack: str | None = None) -> list[str]:
    """The codes of all findings, in order."""
    return [found.code for found in compiled(*documents, pack=pack).found]
