"""What a manager publishes for agents, and what agents take of it."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from koordpolicy.graph import Compiler, Layer
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import CONFIG_MAPS, NAMESPACES
from koordpolicy.language.facts.table import Component
from koordpolicy.runtime.policies.layers import compile_layers
from koordpolicy.runtime.policies.packs import OWN, find_pack
from koordpolicy.runtime.policies.parts import kinds_for, pack_part, part_of
from koordpolicy.runtime.policies.published import (
    POINTER,
    NotPublishable,
    PolicyPublisher,
    PublishedSource,
    packed_files,
)
from koordpolicy.source.revision import Revision, SourceTrouble

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
        self.source = PublishedSource(
            self.cluster, NAMESPACE, Backoff(random.random, initial=0.001), spread=0.0
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
