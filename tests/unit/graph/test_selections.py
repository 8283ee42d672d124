"""What a subject applies to as a whole, what its keys are, and what bands say of resources."""

from koordpolicy.graph.bands import announced_resources, band_resources, bands_up_to, translated_resources
from koordpolicy.graph.keys import mapping_keys
from tests.unit.graph.policies_text import document, graph
from tests.vectors.policies import graph as pack

BASE = document(
    "ColocationProfile",
    "p",
    """
  match: {pods: {matchLabels: {app: web}}, condition: 'pod.name != "x"'}
  labels: {b: "1", a: "1"}
  patch: {metadata: {labels: {from: base}}}
""",
)
OVER = document("ColocationProfile", "p", "  labels: {c: '1'}\n  patch: {metadata: {labels: {from: over}}}\n")
EVERYWHERE = document("ColocationProfile", "q", "  labels: {a: '1'}\n")


def pod(name: str, **labels: str) -> dict[str, dict[str, object]]:
    return {"pod": {"name": name, "labels": labels}}


def test_the_lowest_documents_say_what_a_subject_applies_to() -> None:
    (selection,) = graph(OVER, pack=BASE).selections("ColocationProfile", "p")
    assert [(line.root, line.key, line.values) for line in selection.requirements] == [
        ("pod", "app", ("web",))
    ]
    assert [selection.holds(pod("y", app="web")), selection.holds(pod("x", app="web"))] == [True, False]
    assert not selection.holds(pod("y", app="other"))


def test_a_subject_without_a_match_applies_to_everything() -> None:
    (selection,) = graph(EVERYWHERE).selections("ColocationProfile", "q")
    assert (selection.requirements, selection.holds({})) == ((), True)
    assert graph(EVERYWHERE).selections("ColocationProfile", "nobody") == ()


def test_a_setting_may_be_asked_for_what_applies() -> None:
    narrow = OVER.replace("  labels", "  match: {pods: {matchLabels: {tier: front}}}\n  labels", 1)
    both = graph(narrow, pack=BASE)

    def patch(**labels: str) -> object:
        found = both.setting("ColocationProfile", "p", "patch", pod("y", **labels))
        return found and found["metadata"]["labels"]["from"]

    assert both.setting("ColocationProfile", "p", "patch")["metadata"]["labels"]["from"] == "over"
    assert (patch(app="web"), patch(app="web", tier="front"), patch()) == ("base", "over", None)


def test_keys_of_mappings_are_sorted_and_joined_over_layers() -> None:
    assert mapping_keys(graph(OVER, pack=BASE), "ColocationProfile") == {("p", "labels"): ("a", "b", "c")}


def test_what_bands_say_of_resources() -> None:
    built_in = pack()
    names = {"cpu": "kubernetes.io/batch-cpu", "memory": "kubernetes.io/batch-memory"}
    assert (band_resources(built_in, "batch"), band_resources(built_in, "prod")) == (names, {})
    assert set(announced_resources(built_in)) == set(names.values())
    assert len(translated_resources(built_in)) == 4
    assert bands_up_to(built_in, "mid") == {"mid", "batch", "free"}
    assert bands_up_to(built_in, "nobody") == {"nobody"}
