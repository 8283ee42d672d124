"""`koordpolicy explain DECISION NAME`: what a decision is for a node or pod of a cluster, and why."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.picture import picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.diff.affected import Roots, things_of
from koordpolicy.language.cel.values import Timestamp


@dataclass(frozen=True, slots=True)
class RecordedFacts:
    """What is known of one thing when decisions are made on it: every root by name."""

    records: dict[str, Any]
    at: Timestamp


_ONE: Final = {
    "nodes": "node",
    "zones": "zone",
    "pods": "pod",
    "containers": "container",
    "placements": "pod",
}


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A decision about one thing, the facts of that, and the policies that answer."""

    decision: str
    facts: RecordedFacts
    policies: Policies
    of_cluster: bool
    """Whether a cluster was asked, and its schedulers have policies of theirs."""


def recorded(arguments: argparse.Namespace, terminal: Terminal) -> RecordedQuestion:
    """What the arguments ask of the thing that they name, its facts as who asks the decision would see them.

    Raises `CannotRunError` and `UnknownDecision`.
    """
    picture, heard = picture_of(arguments, terminal)
    policies = policies_of(arguments, heard)
    decision = str(policies.graph.decision(arguments.what).key)
    facts = recorded_in(
        policies.graph, decision, SnapshotFacts(picture), str(arguments.name), Timestamp(picture.taken)
    )
    return RecordedQuestion(decision, facts, policies, heard is not None)


def policy_lines(asked: RecordedQuestion, terminal: Terminal) -> list[str]:
    """By which policies an answer about a cluster is, and whether those are live; nothing about a picture in a file."""
    if not asked.of_cluster:
        return []
    page, policies = Page(terminal.width, terminal.colour()), asked.policies
    return [
        "",
        *page.wrapped(policies.told, 4, "  "),
        *page.wrapped(policies.note, 4),
    ]


def recorded_in(
    graph: RuleGraph, decision: str, facts: SnapshotFacts, name: str, at: Timestamp
) -> RecordedFacts:
    """The same of a thing of a picture that was taken at a moment. Raises `CannotRunError`."""
    things = things_of(graph, decision)
    if things is None:
        raise CannotRunError(
            f"`{decision}` is about no node or pod of a cluster at rest; say the facts by `--given`"
        )
    if things == "cluster":
        raise CannotRunError(
            f"`{decision}` is the same for all nodes and pods of a cluster; leave the name out"
        )
    found: Iterable[tuple[str, Roots]] = getattr(facts, things)(
        graph, str(graph.decision(decision).key.target)
    )
    known = dict(found)
    records = known.get(name) or known.get(f"default/{name}")
    if records is None:
        for thing, reason in facts.unreadable.items():
            if thing.rpartition(" ")[2] in (name, f"default/{name}"):
                raise CannotRunError(f"{thing} is unreadable: {reason}")
        close = sorted(one for one in known if one.rpartition("/")[2] == name.rpartition("/")[2])
        near = f"there is `{close[0]}`" if close else f"it is asked about {len(known):,} {things}"
        raise CannotRunError(f"`{decision}` is asked about no {_ONE[things]} `{name}`; {near}")
    return RecordedFacts(dict(records), at)
