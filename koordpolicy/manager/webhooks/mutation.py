"""What becomes of a pod at its creation: profiles, resources of its band, what agents are told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.profile import apply_profile
from koordpolicy.algorithms.records import submitted_pod_record
from koordpolicy.algorithms.translate import translate_pod, with_extended_spec
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import announced_resources, band_resources
from koordpolicy.graph.budgets import budgets_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.cluster_profiles import Candidates
from koordpolicy.manager.webhooks.devices import KIND as DEVICES
from koordpolicy.manager.webhooks.devices import devices
from koordpolicy.manager.webhooks.profiles import KIND as PROFILE
from koordpolicy.manager.webhooks.profiles import ColocationProfileError, PriorityClasses, Roots
from koordpolicy.manager.webhooks.quotas import keeps_to_nodes
from koordpolicy.manager.webhooks.tracing import MutationObserver
from koordpolicy.manager.webhooks.tree_affinity import QuotaTreeNodes
from koordpolicy.model.facts.pod import SomePodFacts, namespace_facts
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.protocol import PRIORITY_CLASS, QOS_CLASS
from koordpolicy.model.reading import Json, ObjectError, integer, mapping, text, texts
from koordpolicy.model.strategic_merge import PatchError

_CREATE = "CREATE"
_READING: Final = frozenset({PROFILE, DEVICES})
"""The kinds that are asked about a pod as submitted."""
_PROFILE_COST: Final = 30
"""What a profile costs beside the pod's containers, in containers that it looks at."""


@dataclass(frozen=True, slots=True)
class PodContext:
    """What is known beside the pod: its namespace's object, PriorityClasses by name, nanoseconds since 1970."""

    namespace: Json
    priority_class: PriorityClasses
    now: int
    trees: QuotaTreeNodes | None = None
    """What keeps pods to the nodes of their quotas' trees; None where nothing does."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """The pod as it shall be, and why.

    `applied` are the profiles that changed it, `spared` those that match but were not drawn; `failed` are those that could not
    be decided and may be left out, with the reasons. `band` is the band whose resources it requests now, empty when its
    resources kept their names; `tree` the quota tree to whose nodes it is kept, empty for none.
    """

    pod: Json
    applied: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    band: str = ""
    failed: tuple[tuple[str, str], ...] = ()
    tree: str = ""


def mutate(
    pod: Json,
    profiles: Candidates,
    graph: RuleGraph,
    state: PodContext,
    draw: Callable[[], float],
    observer: MutationObserver | None = None,
) -> Mutation:
    """The pod with all that policies put into it.

    Every question is asked about the pod as submitted, so that one profile does not decide on another.
    `draw` gives a random number from 0 to below 100 for each matching profile; `observer` is told of each step.
    Raises ObjectError for what is malformed, ColocationProfileError for what a profile cannot do that is not to be left out, CelError.
    """
    known = read_pod(pod)
    roots = _roots(known, graph, state, some_facts(graph) if observer is None else None)
    changed = pod
    applied: list[str] = []
    spared: list[str] = []
    votes: list[tuple[str, bool]] = []
    failed: list[tuple[str, str]] = []
    patched = False
    size = _PROFILE_COST + len(known.containers) + len(known.init_containers)
    cost, most = 0, budgets_of(graph).containers_per_review
    for profile in profiles.candidates(roots):
        try:
            if not profile.matches(roots):
                continue
            cost += size
            if cost > most:
                raise ObjectError(
                    f"more than {most // size} profiles select this pod, too many for its number of containers"
                )
            taken = profile.takes(draw(), roots)
            effect = profile.effect(roots, state.priority_class) if taken else None
            after = changed if effect is None else apply_profile(changed, effect)
            vote = (profile.translation(roots), taken)
        except (CelError, ColocationProfileError, PatchError) as error:
            if profile.holds_up:
                raise ColocationProfileError(_in_profile(profile.name, error)) from error
            failed.append((profile.name, str(error)))
            continue
        if observer is not None and effect is not None:
            observer.profile(profile, changed, effect)
        changed = after
        patched = patched or (effect is not None and effect.patch is not None)
        (applied if taken else spared).append(profile.name)
        votes.append(vote)
    kubernetes_qos = None if patched else known.kubernetes_qos
    band = _band(changed, graph.catalogue, kubernetes_qos) if _translates(votes) else ""
    names = band_resources(graph, band)
    named = with_extended_spec(translate_pod(changed, names), announced_resources(graph))
    mutated = devices(graph).rewritten(named, roots)
    if observer is not None:
        observer.translated(band, changed, named)
        observer.devices(named, mutated)
    placed, tree = _on_its_nodes(mutated, graph, state)
    if observer is not None:
        observer.placed(mutated, placed)
    return Mutation(placed, tuple(applied), tuple(spared), band if names else "", tuple(failed), tree)


def _on_its_nodes(pod: Json, graph: RuleGraph, state: PodContext) -> tuple[Json, str]:
    """The pod, kept to the nodes of its quota's tree, and the tree: a profile may have put it into that quota."""
    if state.trees is None or not keeps_to_nodes(graph):
        return pod, ""
    namespace = text(mapping(state.namespace, "metadata"), "name", "metadata")
    return state.trees.kept(pod, graph, roots_of(pod, graph, state), namespace)


def _in_profile(name: str, error: Exception) -> str:
    said = str(error)
    return said if said.startswith("profile `") else f"profile `{name}`: {said}"


def _translates(votes: Sequence[tuple[str, bool]]) -> bool:
    """Whether resources are renamed, by what each matching profile says and whether it was applied."""
    return all(mode != "Never" for mode, _ in votes) and any(
        mode == "Matched" or taken for mode, taken in votes
    )


def roots_of(pod: Json, graph: RuleGraph, state: PodContext) -> Roots:
    """The records that profiles are asked about, by root, with all facts. Raises ObjectError."""
    return _roots(read_pod(pod), graph, state, None)


def _roots(pod: Pod, graph: RuleGraph, state: PodContext, some: SomePodFacts | None) -> Roots:
    return {
        "pod": submitted_pod_record(pod, graph.catalogue, TIMES) if some is None else some.of(pod),
        "namespaceObject": namespace_facts(state.namespace),
        "operation": _CREATE,
        "now": TIMES.timestamp(state.now),
    }


def some_facts(graph: RuleGraph) -> SomePodFacts | None:
    """What makes all the facts of pods that a mutation reads; None where that takes whole records.

    Whole ones are a fifth of what a review costs, and most profiles read labels.
    """
    return graph.once("facts of mutations", lambda: _some_facts(graph))


def _some_facts(graph: RuleGraph) -> SomePodFacts | None:
    rules = [rule for key, one in graph.decisions.items() if key.kind in _READING for rule in one.rules]
    matches = [match for unit, match in graph.matches.items() if unit.kind.name in _READING]
    nodes = [node for rule in rules for node in (rule.value, *rule.variables.values())]
    tests = [match.test for match in (*matches, *(rule.match for rule in rules)) if match.test is not None]
    paths = {path for node in (*nodes, *tests) for record, path in facts_of(node) if record == "pod"}
    paths.add("labels")
    return SomePodFacts(sorted(paths)) if SomePodFacts.can_make(paths) else None


def _band(pod: Json, catalogue: Catalogue, kubernetes_qos: str | None) -> str:
    """The band of a pod. What a patch left alone has the Kubernetes QoS class that it came with; None for any other."""
    if kubernetes_qos is None:
        kubernetes_qos = read_pod(pod).kubernetes_qos
    labels = texts(mapping(pod, "metadata"), "labels", "metadata")
    priority = integer(mapping(pod, "spec"), "priority", "spec")
    return catalogue.resolve(labels.get(QOS_CLASS), labels.get(PRIORITY_CLASS), priority, kubernetes_qos).band
