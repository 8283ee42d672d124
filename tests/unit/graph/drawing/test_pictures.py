"""What is drawn of a graph, and how it is written down."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.drawing import FORMATS, Arrow, Detail, Picture, PictureBox, Role, picture_of
from koordpolicy.graph.drawing.build import MANY
from koordpolicy.graph.drawing.mentions import mentions
from tests.unit.graph.policies_text import document, graph
from tests.unit.graph.testing.bundle import BATCH, POOL, RULE, SUPPRESS

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def policies() -> RuleGraph:
    return graph(SUPPRESS, POOL, BATCH, RULE)


def drawn(policies: RuleGraph, *names: str, detail: Detail | None = None) -> Picture:
    return picture_of(policies, [policies.decision(name).key for name in names], detail)


def arrows(picture: Picture) -> list[str]:
    return sorted(f"{arrow.source} > {arrow.target}" for arrow in picture.arrows)


def test_a_decision_is_drawn_with_all_that_it_reads(policies: RuleGraph) -> None:
    picture = drawn(policies, "CPUSuppress.target")
    assert arrows(picture) == [
        "decision:CPUSuppress.target > component:agent",
        "fact:node.capacity.cpu > rule:test/CPUSuppress/default#target",
        "fact:node.labels > parameter:CPUSuppress.parameters.share",
        "parameter:CPUSuppress.parameters.share > rule:test/CPUSuppress/default#target",
        "rule:test/CPUSuppress/default#target > decision:CPUSuppress.target",
    ]
    share = next(box for box in picture.boxes if box.role is Role.PARAMETER)
    assert share.lines == ("25% for nodes with pool=b", "50%")


def test_variables_stand_between_facts_and_rules(policies: RuleGraph) -> None:
    picture = drawn(policies, "CPUSuppress.figures[pods]")
    assert "fact:node.pods > variable:test/CPUSuppress/default/pods" in arrows(picture)
    assert not [box for box in picture.boxes if box.role is Role.PARAMETER]


def test_an_overview_shows_documents(policies: RuleGraph) -> None:
    picture = picture_of(policies, list(policies.decisions), Detail.DOCUMENTS)
    titles = {role: sorted(box.title for box in picture.boxes if box.role is role) for role in Role}
    assert titles[Role.RULE] == [
        "AdmissionRule/r",
        "CPUSuppress/default",
        "CPUSuppress/pool-b",
        "Overcommit/batch",
    ]
    assert titles[Role.DECISION] == ["AdmissionRule/r", "CPUSuppress", "Overcommit/batch"]
    assert titles[Role.COMPONENT] == ["agent", "manager", "webhook"]
    assert "node.capacity" in titles[Role.FACT]


def test_the_number_of_decisions_decides_on_the_detail(policies: RuleGraph) -> None:
    rules = "".join(
        document("AdmissionRule", f"r{at}", "  require: {cel: pod.active}\n") + "---\n"
        for at in range(MANY + 1)
    )
    many = graph(rules)
    assert all("require" not in box.title for box in picture_of(many, list(many.decisions)).boxes)
    assert any(box.role is Role.VARIABLE for box in picture_of(policies, list(policies.decisions)).boxes)
    by_documents = drawn(policies, "CPUSuppress.target", detail=Detail.DOCUMENTS)
    assert [box.title for box in by_documents.boxes if box.role is Role.DECISION] == ["CPUSuppress"]


@pytest.mark.parametrize("format", FORMATS)
def test_pictures_look_as_they_did(
    format: str, policies: RuleGraph, golden: Callable[[Path, str], None]
) -> None:
    suffix = {"mermaid": "mmd"}.get(format, format)
    golden(GOLDEN / f"target.{suffix}", FORMATS[format](drawn(policies, "CPUSuppress.target")))


ODD = Picture(
    'a "title" <b>',
    (
        PictureBox(
            "f",
            Role.FACT,
            'quote " less < and & back\\slash',
            ("`tick`", "#hash", "größe 大"),
            "hint\nof two lines",
        ),
        PictureBox("d", Role.DECISION, "d"),
    ),
    (Arrow("f", "d"),),
)


def test_svg_is_well_formed_whatever_the_texts_are() -> None:
    root = ET.fromstring(FORMATS["svg"](ODD))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert 'quote " less < and & back\\slash' in texts
    assert "größe 大" in texts


def test_svg_has_room_for_its_texts() -> None:
    text = FORMATS["svg"](ODD)
    widths = [float(width) for width in re.findall(r'class="box" width="([\d.]+)"', text)]
    assert widths[0] >= len('quote " less < and & back\\slash') * 7


def test_dot_and_mermaid_quote_what_means_something_to_them() -> None:
    dot = FORMATS["dot"](ODD)
    assert 'digraph "a \\"title\\" <b>"' in dot
    assert 'quote \\" less < and & back\\\\slash\\l' in dot
    mermaid = FORMATS["mermaid"](ODD)
    assert "quote #quot; less #lt; and #amp; back\\slash<br/>#96;tick#96;<br/>#35;hash" in mermaid


def test_mentions_are_the_longest_facts_that_a_text_names() -> None:
    found = mentions(
        "node.labels.pool == 'a' && node.usage.prod.?cpu.orValue(cpu('0')) > variables.x.y "
        "&& node.pods.exists(p, p.usage.cpu > parameters.z) && now > timestamp('2026-01-01T00:00:00Z')"
    )
    assert found is not None
    assert list(found.facts) == ["node.labels", "node.usage.prod.cpu", "node.pods", "now"]
    assert list(found.variables) == ["x"]
    assert list(found.parameters) == ["z"]
    assert mentions("no expression at all (") is None
