"""What a manager publishes for agents, and what agents take of it."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.graph import Compiler, Layer
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import CONFIG_MAPS, NAMESPACES
from koordpolicy.language.facts.table import Component
from koordpolicy.model.labels import parse_selector
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.policies.gating import NodePart, RolloutReach
from koordpolicy.runtime.policies.held import HeldReach, HeldRevision, held_text, read_held
from koordpolicy.runtime.policies.layers import compile_layers
from koordpolicy.runtime.policies.packs import OWN, find_pack
from koordpolicy.runtime.policies.parts import kinds_for, pack_part, part_of
from koordpolicy.runtime.policies.published import (
    POINTER,
    NotPublishable,
    PublishedSource,
    packed_files,
)
from koordpolicy.runtime.policies.publishing import HeldTree, PolicyPublisher
from koordpolicy.source.revision import Revision, SourceTrouble
from tests.unit.runtime.scenes import until

NAMESPACE = "koordpolicy-system"
NOW = 1_800_000_000.0
ROOT = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: ours}
spec: {extends: [koordinator]}
"""
MIXED = """# of both
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: rule}
spec: {enabled: false, resource: pods, require: true, message: never}
---
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: threshold}
spec:
  parameters: {threshold: 61%}
"""
FILES = {
    "koordpolicy.yaml": ROOT,
    "mixed.yaml": MIXED,
    "scheduling.yaml": MIXED.split("---", maxsplit=1)[0].replace("name: rule", "name: other"),
    "test.yaml": "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\nspec: {cases: [{name: c, expect: {CPUSuppress.enabled: true}}]}\n",
}
KINDS = kinds_for(Component.AGENT)


def test_the_part_keeps_places_and_drops_what_agents_never_ask() -> None:
    part = part_of(FILES, KINDS)
    assert list(part) == ["koordpolicy.yaml", "mixed.yaml"]
    text = part["mixed.yaml"]
    assert "AdmissionRule" not in text
    assert text.count("\n") == MIXED.count("\n")
    assert text.splitlines().index("kind: CPUSuppress") == MIXED.splitlines().index("kind: CPUSuppress")


def test_what_an_exception_overrides_stays() -> None:
    exception = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: for-a-while}
spec:
  overrides: {"AdmissionRule/rule.enabled": false}
"""
    assert "AdmissionRule" in part_of({**FILES, "e.yaml": exception}, KINDS)["mixed.yaml"]


def test_the_part_decides_as_the_whole_does_and_is_a_fraction_of_it() -> None:
    whole = Compiler(find_pack).compile(Layer(OWN, FILES)).graph
    part = Compiler(pack_part(KINDS)).compile(Layer(OWN, part_of(FILES, KINDS)))
    assert list(part.found) == []
    assert whole is not None
    assert part.graph is not None
    assert len(part.graph.units) < len(whole.units) / 2
    facts = {"node": {"labels": {}, "annotations": {}, "name": "n"}}
    asked = [
        ("CPUSuppress", "enabled"),
        ("CPUSuppress", "minimumCPUs"),
        ("MetricCollection", "interval"),
        ("MemoryEviction", "threshold"),
        ("CPUBurst", "policy"),
    ]
    for kind, field in asked:
        assert part.graph.about(kind, "", facts).value(field) == whole.about(kind, "", facts).value(field)
    threshold = "CPUSuppress.parameters.threshold"
    rule = part.graph.ask(threshold, **facts).provenance.rules[0]
    assert (rule.span.file, rule.span.start.line) == ("mixed.yaml", 11)


class Site:
    def __init__(self) -> None:
        self.cluster = MemoryCluster(Store(lambda: NOW))
        self.publisher = PolicyPublisher(self.cluster, NAMESPACE)
        self.reach = HeldReach()
        self.source = PublishedSource(
            self.cluster, NAMESPACE, Backoff(random.random, initial=0.001), spread=0.0, reach=self.reach
        )

    async def begin(self) -> None:
        await self.cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

    async def names(self) -> list[str]:
        page = await self.cluster.list(CONFIG_MAPS, namespace=NAMESPACE)
        return [one["metadata"]["name"] for one in page.items]


async def following(items: AsyncIterator[Revision | SourceTrouble]) -> Revision | SourceTrouble:
    async with asyncio.timeout(20):
        return await anext(items)


def test_the_part_that_lies_above_decides_at_an_agent() -> None:
    above = {
        "ConfigMap/threshold.yaml": MIXED.replace("61%", "47%").replace(
            "spec:\n  parameters", "spec:\n  precedence: 9\n  parameters"
        )
    }
    part = part_of(above, KINDS)
    assert "AdmissionRule" not in part["ConfigMap/threshold.yaml"]
    compiled = compile_layers(Compiler(pack_part(KINDS)), part_of(FILES, KINDS), part).compilation
    assert compiled.graph is not None
    answer = compiled.graph.ask("CPUSuppress.parameters.threshold", node={"labels": {}})
    assert (str(answer.value), answer.provenance.rules[0].layer) == ("47.0", "slo-controller-config")


def test_agents_get_what_lies_above_as_what_lies_above() -> None:
    asyncio.run(_agents_get_what_lies_above_as_what_lies_above())


async def _agents_get_what_lies_above_as_what_lies_above() -> None:
    site = Site()
    await site.begin()
    async with aclosing(site.source.revisions()) as items:
        await following(items)
        above = {"ConfigMap/a.yaml": MIXED}
        name = await site.publisher.publish(FILES, "", above)
        assert await following(items) == Revision(FILES, name.digest, above=above)
        bare = await site.publisher.publish(FILES, "")
        assert await following(items) == Revision(FILES, bare.digest)
        assert bare.digest != name.digest


def test_agents_get_each_revision_once_and_old_ones_go() -> None:
    asyncio.run(_agents_get_each_revision_once_and_old_ones_go())


async def _agents_get_each_revision_once_and_old_ones_go() -> None:
    site = Site()
    await site.begin()
    async with aclosing(site.source.revisions()) as items:
        trouble = await following(items)
        assert isinstance(trouble, SourceTrouble)
        assert trouble.reason == "NotPublished"
        files, name = FILES, None
        for number in range(8):
            files = {**FILES, "more.yaml": f"# {number}\n"}
            name = await site.publisher.publish(files, commit=f"{number:040x}")
            found = await following(items)
            assert found == Revision(files, name.digest, f"{number:040x}")
        assert await site.publisher.publish(files, commit=f"{7:040x}") == name
        assert name is not None
        names = await site.names()
        assert len(names) == 5  # the pointer, the newest and three before it
        assert {POINTER, name.object_name} <= set(names)


def test_what_a_rollout_holds_back_is_given_beside_the_active_one() -> None:
    asyncio.run(_what_a_rollout_holds_back_is_given_beside_the_active_one())


async def _what_a_rollout_holds_back_is_given_beside_the_active_one() -> None:
    site = Site()
    await site.begin()
    next_files = {**FILES, "more.yaml": "# more\n"}
    async with aclosing(site.source.revisions()) as items:
        await following(items)
        few = HeldTree(
            next_files, {}, "b" * 40, RolloutReach("few", (NodePart(parse_selector("!gpu"), 5.0),), 10.0, 3)
        )
        name = await site.publisher.publish(FILES, "a" * 40, held=few)
        active = Revision(FILES, name.digest, "a" * 40)
        assert await following(items) == active
        held = await following(items)
        assert isinstance(held, Revision)
        assert (held.held, held.files, held.commit) == (True, next_files, "b" * 40)
        assert site.reach.held is not None
        assert site.reach.held.is_of(held)
        assert site.reach.held.reach == few.reach

        # The next step says nothing that would have to be fetched or compiled.
        waiting = asyncio.create_task(following(items))
        more = replace(few, reach=RolloutReach("more", (*few.reach.parts, NodePart(share=25.0))))
        assert (await site.publisher.publish(FILES, "a" * 40, held=more)).held is not None
        await until(lambda: site.reach.held is not None and site.reach.held.reach == more.reach)
        assert not waiting.done()

        # Who has just begun to lead, and knows of no rollout, leaves it.
        assert (await site.publisher.publish(FILES, "a" * 40, patient=True)).held is not None
        await site.publisher.publish(FILES, "a" * 40)
        assert await waiting == active
        await until(lambda: site.reach.held is None)

        # Where nothing of it concerns followers, they have nothing to hold.
        same = replace(few, files=FILES)
        assert (await site.publisher.publish(FILES, "a" * 40, held=same)).held is None

        await site.publisher.publish(FILES, "a" * 40, held=few)
        assert await following(items) == held
        await site.publisher.publish(next_files, "b" * 40)
        assert await following(items) == replace(held, held=False)
        assert len(await site.names()) == 3


PARTS = st.builds(
    NodePart,
    st.none() | st.sampled_from(["a=b,c!=d", "e in (f,g),!h", "i", ""]).map(parse_selector),
    st.none() | st.floats(0, 100),
)


@given(
    st.builds(
        HeldRevision,
        st.just("d" * 64),
        st.sampled_from(["", "c" * 40]),
        st.builds(
            RolloutReach,
            st.text("ab-", max_size=5),
            st.lists(PARTS, max_size=4).map(tuple),
            st.floats(0, 100),
            st.integers(0, 1000),
        ),
    )
)
def test_how_far_a_revision_is_let_go_survives_its_text(held: HeldRevision) -> None:
    assert read_held(held_text(held)) == held


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "held"),
        ("{}", "SHA-256"),
        (json.dumps({"digest": "d" * 64, "ahead": [{"share": 101}]}), "0 to 100"),
        (json.dumps({"digest": "d" * 64, "ahead": [{"share": True}]}), "0 to 100"),
        (
            json.dumps(
                {
                    "digest": "d" * 64,
                    "ahead": [{"nodes": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}],
                }
            ),
            "Is",
        ),
    ],
)
def test_a_held_revision_that_cannot_be_read_says_where(text: str, why: str) -> None:
    with pytest.raises(ObjectError, match=why):
        read_held(text)


def test_what_does_not_hold_what_it_says_is_not_taken_and_tried_again() -> None:
    asyncio.run(_what_does_not_hold_what_it_says_is_not_taken_and_tried_again())


async def _what_does_not_hold_what_it_says_is_not_taken_and_tried_again() -> None:
    site = Site()
    await site.begin()
    good = await site.publisher.publish(FILES, commit="")
    async with aclosing(site.source.revisions()) as items:
        assert isinstance(await following(items), Revision)
        wrong = {"data": {"digest": good.digest[:16] + "0" * 48}}
        await site.cluster.patch(CONFIG_MAPS, POINTER, MergePatch(wrong), namespace=NAMESPACE)
        trouble = await following(items)
        assert isinstance(trouble, SourceTrouble)
        assert trouble.reason == "NotAsNamed"
        missing = {"data": {"digest": "f" * 64}}
        await site.cluster.patch(CONFIG_MAPS, POINTER, MergePatch(missing), namespace=NAMESPACE)
        trouble = await following(items)
        assert isinstance(trouble, SourceTrouble)
        assert trouble.reason == "NotFound"
        await site.publisher.publish(FILES, commit="")
        assert isinstance(await following(items), Revision)


def test_what_is_too_large_is_told_with_the_remedy() -> None:
    noise = random.Random(1)
    files = {"large.yaml": "".join(chr(noise.randrange(33, 0x2000)) for _ in range(600_000))}
    with pytest.raises(NotPublishable, match="directory"):
        packed_files(files)
