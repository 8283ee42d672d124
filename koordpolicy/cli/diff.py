"""`koordpolicy diff`: which decisions change between two revisions, with examples, and on whom that falls."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Final

from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.command import DIFFERENT, GAVE_UP, OK, CannotRunError
from koordpolicy.cli.difference import (
    RENDERERS,
    FailedOn,
    LaterOnCluster,
    OnCluster,
    ShownDifference,
    render_refused,
)
from koordpolicy.cli.revisions import RefusedSideError, compiled_side, sides
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.diff import Affected, Difference, Later, Sides, affected, compare_from
from koordpolicy.kube.snapshot import Snapshot, SnapshotError, read_snapshot
from koordpolicy.language.cel.values import Timestamp


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show which decisions differ; DIFFERENT or GAVE_UP where that was asked for."""
    try:
        return _run(arguments, terminal)
    except RefusedSideError as error:
        # Whoever reviews a change reads the comment, and would else see none, or that of an earlier commit.
        if arguments.output == "markdown":
            terminal.print(render_refused(error.what, error.findings))
        raise


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _demand_simulate(arguments)
    snapshot = _snapshot(arguments.cluster)
    old, new = sides(arguments.old, arguments.new, arguments.policies)
    # Exceptions come and go by time; both revisions are looked at in the same moment.
    moment = _moment(arguments.at, snapshot)
    graphs = [_compiled(compiled_side(side, arguments.compiler).graph) for side in (old, new)]
    before, after = (graph.at(moment) for graph in graphs)
    # With the simulator, which few differences need.
    effects = import_module("koordpolicy.cli.simulation.effect") if arguments.simulate else None
    names = old.title, new.title
    if effects is not None:
        effects.demand_profiles(tuple(zip(names, graphs, strict=True)))
    # Without a moment that is named, simulations have theirs, and no exceptions.
    asked, begins = (graphs, None) if arguments.at is None else ([before, after], moment)
    difference = compare_from(before, after, moment, examples=None if arguments.at is None else moment)
    shown = ShownDifference(
        old.title,
        new.title,
        difference,
        None
        if snapshot is None
        else _on_cluster(arguments.cluster, snapshot, Sides(before, after), difference, terminal),
        None
        if effects is None
        else effects.simulated_effect(arguments, *asked, names, (old.commit, new.commit), begins, terminal),
        terminal.width,
        terminal.colour(),
    )
    terminal.print(RENDERERS[arguments.output](shown))
    if shown.effect is not None and shown.effect.interrupted:
        terminal.say(f"koordpolicy diff: {shown.effect.interrupted}")
        return INTERRUPTED
    if not arguments.exit_code or difference.empty:
        return OK
    return DIFFERENT if difference.differs else GAVE_UP


def _moment(said: str | None, snapshot: Snapshot | None) -> Timestamp:
    """The moment that is looked at: the one that is named, else that of the snapshot, else now."""
    if said is None and snapshot is not None:
        return Timestamp(snapshot.taken)
    return moment_of(said)


def _compiled(graph: RuleGraph | None) -> RuleGraph:
    assert graph is not None
    return graph


_OF_SIMULATIONS: Final = (
    "nodes",
    "pods",
    "generate",
    "batch",
    "interval",
    "until",
    "contention",
    "faults",
    "agents",
    "seeds",
)
_USUAL: Final = {"seed": 1, "sample": 1.0}
"""What others that say so are where they are not named."""


def _demand_simulate(arguments: argparse.Namespace) -> None:
    """Refuse flags that say what to simulate where nothing is simulated."""
    given = (
        *(name for name in _OF_SIMULATIONS if getattr(arguments, name)),
        *(name for name, usual in _USUAL.items() if getattr(arguments, name) != usual),
    )
    said = next(iter(given), None)
    if said is not None and not arguments.simulate:
        raise CannotRunError(f"--{said} says what to simulate: add --simulate")


def _snapshot(file: str | None) -> Snapshot | None:
    if file is None:
        return None
    try:
        return read_snapshot(Path(file))
    except SnapshotError as error:
        manifests = import_module(
            "koordpolicy.cli.picture"
        )  # with a client of the API server, which few need
        found: Snapshot | None = manifests.objects_of_kubectl(file)
        if found is None:
            raise CannotRunError(str(error)) from None
        return found


_SHOWN: Final = 20
"""Objects that cannot be read and are told of by name."""


def _on_cluster(
    file: str,
    snapshot: Snapshot,
    sides: Sides,
    difference: Difference,
    terminal: Terminal,
) -> OnCluster:
    facts = SnapshotFacts(snapshot)
    found = _affected(sides, facts, difference)
    failed = _failed(sides)
    # What begins or ends later is asked of the nodes and pods as they are, with the exceptions of that moment.
    later = tuple(
        LaterOnCluster(
            one.moment, _affected(Sides(sides.old.at(one.moment), sides.new.at(one.moment)), facts, one)
        )
        for one in difference.later
    )
    for name, reason in list(facts.unreadable.items())[:_SHOWN]:
        terminal.say(f"{name} is unreadable: {reason}")
    if len(facts.unreadable) > _SHOWN:
        terminal.say(f"{len(facts.unreadable) - _SHOWN} more objects are unreadable")
    # With the webhooks, which few differences need.
    admissions = import_module("koordpolicy.cli.admissions")
    return OnCluster(
        Path(file).name,
        snapshot.taken_text,
        len(snapshot.nodes),
        len(snapshot.pods),
        found,
        later,
        failed,
        admissions.changed_admissions(sides, snapshot, difference),
    )


def _affected(sides: Sides, facts: SnapshotFacts, difference: Difference | Later) -> tuple[Affected, ...]:
    """What differs, or is open, asked of every node and pod."""
    names = [change.decision for change in difference.decisions]
    names += [effect.decision for change in difference.decisions for effect in change.effects]
    names += [
        one.decision for one in difference.open if one.decision in sides.old or one.decision in sides.new
    ]
    # A parameter decides nothing by itself; what reads it stands beside it, unless that cannot be told.
    asked = [name for name in dict.fromkeys(names) if ".parameters." not in name or _alone(name, difference)]
    found = tuple(affected(sides, facts, asked))
    unknown = {one.decision for one in found if one.untold}
    behind = [
        change.decision
        for change in difference.decisions
        if change.decision not in asked and any(effect.decision in unknown for effect in change.effects)
    ]
    return found + tuple(affected(sides, facts, behind))


def _failed(sides: Sides) -> tuple[FailedOn, ...]:
    """What failed while the cluster was asked about, told once where it is the same in both revisions."""
    before, after = sides.failed_old.found(), sides.failed_new.found()
    return (
        *(FailedOn(one, old=one in before, new=True) for one in after),
        *(FailedOn(one, old=True, new=False) for one in before if one not in after),
    )


def _alone(name: str, difference: Difference | Later) -> bool:
    """Whether nothing that reads a parameter changes with it."""
    return not any(change.decision == name and change.effects for change in difference.decisions)
