"""`koordpolicy explain`: a diagnostic code, a decision, a kind, a fact, a function, where a pod or a gang goes, whether a pod would
be moved, where its migration stands, what a quota may use, or what admission makes of a pod.
"""

import argparse
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.facts_flag import read_given
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.catalogue import UnknownCodeError, page
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import Answer, RuleGraph, RuleRef
from koordpolicy.graph.describe import (
    decision_data,
    describe,
    describe_answer,
    describe_declaration,
    describe_subject,
)
from koordpolicy.graph.describe.answer import value_type
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.graph.notation import written
from koordpolicy.graph.reads import fact_type
from koordpolicy.language.cel.values import Timestamp

_BUNDLE: Final = b"kind: PolicyBundle"
_OF_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "quota": "explain_quota",
        "pod": "explain_pod",
        "move": "explain_move",
        "migration": "explain_migration",
        "node": "explain_node_room",
        "gang": "explain_gang",
    }
)
"""What is asked by a name, with the module that answers and its function."""
_OF_ONE: Final = {
    "move": "[NAMESPACE/]POD",
    "migration": "JOB` or `koordpolicy explain migration [NAMESPACE/]POD",
}
"""Questions that are no facts as well, with whom they are about."""
_OF_KERNELS: Final = """

What the kernel of a node is told, and by which rules, its agent says: `koordpolicy
explain node --agent [URL]`, or `--record FILE` of a saved record. Who has its devices
and CPUs: `koordpolicy explain node NAME`."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Explain what was named."""
    what = arguments.what
    if arguments.record or arguments.agent:
        if what != "node" or arguments.name is not None:
            raise CannotRunError(
                "`--record` and `--agent` are for `koordpolicy explain node`, without a name"
            )
        nodes = import_module("koordpolicy.cli.explain_node")
        return int(nodes.explain_node(arguments, terminal))
    if arguments.namespace:
        arguments.name = _within(arguments.namespace, arguments.name, what)
    if arguments.name is not None:
        # The other questions need neither a scheduler nor a client of the API server.
        if (name := _OF_NAMES.get(what)) is not None:
            return int(getattr(import_module(f"koordpolicy.cli.{name}"), name)(arguments, terminal))
        return _explain_record(arguments, terminal)
    if what == "pod" and arguments.filename:
        admissions = import_module("koordpolicy.cli.explain_admission")
        return int(admissions.explain_admission(arguments, terminal))
    if arguments.policies_from_cluster:
        raise CannotRunError("`--policies-from-cluster` is for questions about a cluster")
    if re.fullmatch(r"[Kk][Pp]\d+", what):
        try:
            _show({"code": what.upper()}, page(what, terminal.width), arguments, terminal)
        except UnknownCodeError as error:
            raise CannotRunError(error.args[0]) from None
        return OK
    if arguments.given is None:
        declared = describe_declaration(what, terminal.width)
        if declared is not None:
            _show({"name": what}, declared + (_OF_KERNELS if what == "node" else ""), arguments, terminal)
            return OK
    if what in _OF_ONE:
        raise CannotRunError(
            f"`{what}` is asked of one by its name: `koordpolicy explain {what} {_OF_ONE[what]}`"
        )
    _say_of_whom(arguments, terminal)
    graph = graph_of(arguments.policies, arguments.compiler).at(moment_of(arguments.at))
    try:
        terminal.print(_decided(graph, arguments, terminal))
    except UnknownDecision as error:
        raise CannotRunError(str(error)) from None
    return OK


def _within(namespace: str, name: str | None, what: str) -> str:
    """A name with its namespace before it, as if it had been written so. Raises CannotRunError."""
    if name is None:
        raise CannotRunError(
            f"`-n {namespace}` is for the name of one: `koordpolicy explain {what} -n {namespace} NAME`"
        )
    if what in ("node", "quota"):
        raise CannotRunError(f"a {what} is asked for by its name alone, without `-n {namespace}`")
    before, _, short = name.rpartition("/")
    if before and before != namespace:
        raise CannotRunError(f"`{name}` and `-n {namespace}` name two namespaces: give one of them")
    return f"{namespace}/{short}"


def _explain_record(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """A decision on a node or pod of a cluster."""
    if arguments.given is not None:
        raise CannotRunError("the facts come from `--given` or from a cluster: give one of the two")
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    _say_of_whom(arguments, terminal)
    records = import_module("koordpolicy.cli.explain_record")
    try:
        if "." not in arguments.what:
            # No decision of any cluster: none needs to be asked for what is a slip.
            graph_of(arguments.policies, arguments.compiler).decision(arguments.what)
        asked = records.recorded(arguments, terminal)
    except UnknownDecision as error:
        raise CannotRunError(
            f"{error}; a name stands after `pod`, `move`, `gang`, `quota`, `node` or a decision"
        ) from None
    policies, name, facts = asked.policies, asked.decision, asked.facts
    graph = policies.graph.at(facts.at) if arguments.at is None else policies.graph
    if arguments.output == "json":
        said = {**answer_data(graph, name, facts.records), "policies": policies.plain()}
        terminal.print(json_text([said], indent=2))
    else:
        answer = describe_answer(graph, name, facts.records, frozenset(), terminal.width)
        terminal.print("\n".join([answer, *records.policy_lines(asked, terminal)]))
    return OK


def _say_of_whom(arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Who stands in a bundle's folder and names no policies may mean that bundle, as `check` does there."""
    if not arguments.policies and any(
        _BUNDLE in one.read_bytes() for one in Path().glob("*.y*ml") if one.is_file()
    ):
        terminal.say("the built-in pack alone is asked; `-p .` asks the bundle in this folder")


def _show(about: dict[str, str], text: str, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """A page of words; for programs with what it is about."""
    terminal.print(json_text({**about, "text": text}, indent=2) if arguments.output == "json" else text)


def _decided(graph: RuleGraph, arguments: argparse.Namespace, terminal: Terminal) -> str:
    """What the policies say. Raises `UnknownDecision`."""
    name, width = arguments.what, terminal.width
    one = _is_decision(graph, name)
    if arguments.given is None:
        if arguments.output == "json":
            return _data(graph, name)
        return describe(graph, name, width) if one else describe_subject(graph, name, width)
    given = read_given(arguments.given, terminal)
    if arguments.at is None and isinstance(said := given.said.get(("now", "")), Timestamp):
        graph = graph.at(said)
    names = [name] if one else [str(key) for key in graph.decisions if name in (key.kind, key.target)]
    if not names:
        return describe_subject(graph, name, width)
    if arguments.output == "json":
        return json_text([answer_data(graph, each, given.records) for each in names], indent=2)
    answers = (graph.ask(each, **given.records) for each in names)
    unsaid = given.unsaid(frozenset(read.path for answer in answers for read in answer.provenance.facts))
    return "\n\n".join(describe_answer(graph, each, given.records, unsaid, width).rstrip() for each in names)


def _data(graph: RuleGraph, name: str) -> str:
    """Decisions of a name for programs: one of that name itself, a list of those that share it as their target."""
    if _is_decision(graph, name):
        return json_text(decision_data(graph, graph.decision(name).key), indent=2)
    keys = [key for key in graph.decisions if name in (key.kind, key.target)]
    if not keys:
        return describe_subject(graph, name)  # raises, naming what is near
    return json_text([decision_data(graph, key) for key in keys], indent=2)


def _is_decision(graph: RuleGraph, name: str) -> bool:
    try:
        graph.decision(name)
    except UnknownDecision:
        return False
    return True


def answer_data(graph: RuleGraph, name: str, records: dict[str, Any]) -> dict[str, Any]:
    """An answer as plain data; values are written as in policies."""
    answer: Answer = graph.ask(name, **records)
    decision = graph.decision(name)
    rule = graph.deciding_rule(name, *(records.get(root, {}) for root in decision.roots))
    type = value_type(decision, rule)
    return {
        "decision": name,
        "value": None if answer.error is not None else written(type, answer.value),
        "error": None if answer.error is None else str(answer.error),
        "rules": [
            {
                "decision": ref.decision,
                "document": ref.document,
                "layer": ref.layer,
                "file": ref.span.file,
                "line": ref.span.start.line,
                "column": ref.span.start.column,
                "text": ref.text,
                **_exception(ref),
            }
            for ref in answer.provenance.rules
        ],
        "facts": [
            {
                "fact": read.path,
                "present": read.present,
                "value": written(fact_type(read.path), read.value) if read.present else None,
            }
            for read in answer.provenance.facts
            if read.path.partition(".")[0] in decision.roots
        ],
        "revision": answer.provenance.digest,
    }


def _exception(ref: RuleRef) -> dict[str, object]:
    """Whose exception a rule is, where it is one."""
    terms = ref.terms
    if terms is None:
        return {}
    return {"exception": {"owner": terms.owner, "reason": terms.reason, "expires": terms.until}}
