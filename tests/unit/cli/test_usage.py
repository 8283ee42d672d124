"""What flags say without importing what does the work is what that says."""

from importlib import import_module

import pytest

from koordpolicy.cli.difference import RENDERERS as DIFFERENCES
from koordpolicy.cli.flags import repository
from koordpolicy.cli.main import COMMANDS, module_of, parser
from koordpolicy.cli.results import RENDERERS as RESULTS
from koordpolicy.graph.drawing import FORMATS, Detail
from koordpolicy.graph.proof import ProofBudget
from koordpolicy.language.command_line.arguments import arguments_of, subparsers
from koordpolicy.language.facts import Component
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.apiserver import GRACE
from koordpolicy.runtime.component import NAMESPACE
from koordpolicy.runtime.logs import LogFormat
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.scheduler.extender.server import MEMORY
from koordpolicy.scheduler.extender.steps import OWN
from koordpolicy.scheduler.loop import IN_FLIGHT
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE
from koordpolicy.source.git.size import SyncLimits
from koordpolicy.source.limits import TreeLimits

FLAGS = {
    (name, flag): action
    for name, command in subparsers(parser()).items()
    for action in arguments_of(command)
    for flag in action.option_strings
}

CHOICES = {
    ("test", "--output"): RESULTS,
    ("diff", "--output"): DIFFERENCES,
    ("graph", "--output"): ("text", "json", *FORMATS),
    ("graph", "--component"): Component,
    ("graph", "--detail"): Detail,
    ("sync", "--log-format"): LogFormat,
    ("manager", "--log-format"): LogFormat,
}
DEFAULTS = {
    ("prove", "--inputs"): ProofBudget().inputs,
    ("prove", "--work"): ProofBudget().work,
    ("manager", "--policy-trial-cpu"): TrialLimits().cpu,
    ("manager", "--unready-after"): GRACE,
    ("manager", "--namespace"): NAMESPACE,
    ("scheduler", "--profile"): DEFAULT_PROFILE,
    ("scheduler", "--in-flight"): IN_FLIGHT,
    ("scheduler", "--extender-steps"): OWN,
}
QUANTITIES = {
    ("manager", "--policy-trial-memory"): TrialLimits().memory,
    ("scheduler", "--extender-memory"): MEMORY,
}


@pytest.mark.parametrize("flag", CHOICES, ids=" ".join)
def test_choices(flag: tuple[str, str]) -> None:
    assert list(FLAGS[flag].choices or ()) == [str(one) for one in CHOICES[flag]]


@pytest.mark.parametrize("flag", DEFAULTS, ids=" ".join)
def test_defaults(flag: tuple[str, str]) -> None:
    assert FLAGS[flag].default == DEFAULTS[flag]


@pytest.mark.parametrize("flag", QUANTITIES, ids=" ".join)
def test_quantities(flag: tuple[str, str]) -> None:
    assert amount("memory", FLAGS[flag].default) == QUANTITIES[flag]


def test_limits_of_repositories() -> None:
    usual = SyncLimits()
    expected = {name: getattr(usual.tree, name.replace("-", "_")) for name in TreeLimits.names()}
    assert {name: amount(name, most) for name, most in repository.LIMITS.items()} == {
        **expected,
        "fetch": usual.fetch,
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_does_something(name: str) -> None:
    assert callable(import_module(f"koordpolicy.cli.{module_of(name)}").run)
