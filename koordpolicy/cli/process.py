"""The flags that all long-running commands share, and how such a command is run."""

import argparse
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.serving import http_of
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.runtime.component import Settings, state_directory_problem
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.process import Process, run_process
from koordpolicy.runtime.tracing import TracingSettings
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import Rehearse

if TYPE_CHECKING:
    from koordpolicy.runtime.trial.client import Trials
    from koordpolicy.source.git.sync import SyncSettings


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings that the flags make. Raises `CannotRunError`."""
    if arguments.decision_log_every < 1:
        raise CannotRunError("--decision-log-every takes a number from 1")
    log_size = _log_size(arguments.decision_log_size)
    if not 1 <= arguments.unready_after <= 86_400:
        raise CannotRunError("--unready-after takes seconds from 1 to 86400")
    if arguments.state_dir and (problem := state_directory_problem(arguments.state_dir)):
        raise CannotRunError(f"--state-dir: {problem}")
    return Settings(
        policies=arguments.policies,
        policies_from_cluster=arguments.policies_from_cluster,
        repository=_repository(arguments),
        webhook_secret=arguments.policies_webhook_secret_file,
        state_directory=arguments.state_dir,
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        namespace=arguments.namespace,
        http=http_of(arguments),
        leader_elect=getattr(arguments, "leader_elect", False),
        decision_log=arguments.decision_log,
        decision_log_every=arguments.decision_log_every,
        decision_log_size=log_size,
        policy_tests=not arguments.no_policy_tests,
        max_cost=arguments.max_cost_per_decision,
        instance=arguments.instance,
        unready_after=arguments.unready_after,
        tracing=_tracing(arguments) if hasattr(arguments, "tracing_endpoint") else None,
    )


def _tracing(arguments: argparse.Namespace) -> TracingSettings | None:
    endpoint, sampling = arguments.tracing_endpoint, arguments.tracing_sampling
    if not 0 <= sampling <= 1:
        raise CannotRunError("--tracing-sampling takes a number from 0 to 1")
    if not endpoint:
        return None
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", endpoint):
        raise CannotRunError(
            f"--tracing-endpoint takes a URL such as http://collector:4318, not `{endpoint}`"
        )
    return TracingSettings(endpoint, sampling)


def _log_size(said: str) -> int:
    try:
        size = amount("memory", said)
    except ValueError:
        size = -1
    if size < 0:
        raise CannotRunError(f"--decision-log-size takes a quantity such as 100Mi, or 0; not `{said}`")
    return size


def run_component(
    arguments: argparse.Namespace,
    component: str,
    settings: Settings,
    main: Callable[[Process, Settings], Awaitable[None]],
    rehearse: Rehearse | None = None,
) -> int:
    """Set up logging and run the process to its end; its exit code. Revisions are tried with `rehearse` beforehand.

    Raises `CannotRunError`.
    """
    limits = _trial_limits(arguments)
    set_up_logging(LogFormat(arguments.log_format), verbose=arguments.verbose)
    keep_what_is_there()
    # What ships with the product has been tried; whatever else comes is somebody's commit.
    trials = _trials(limits, rehearse) if limits.cpu and settings.follows_policies else None
    with trials or nullcontext():
        tried = replace(settings, trials=trials)
        return run_process(lambda process: main(process, tried), component, arguments.instance)


def _trials(limits: TrialLimits, rehearse: Rehearse | None) -> "Trials | None":
    from koordpolicy.runtime.trial.client import start_trials  # noqa: PLC0415  # the agents of nodes have no such process

    return start_trials(limits, rehearse)


def _trial_limits(arguments: argparse.Namespace) -> TrialLimits:
    cpu, said = arguments.policy_trial_cpu, arguments.policy_trial_memory
    if not 0 <= cpu < 1e6:
        raise CannotRunError("--policy-trial-cpu takes seconds, or 0")
    try:
        memory = amount("memory", said)
    except ValueError:
        raise CannotRunError(f"--policy-trial-memory takes a quantity such as 512Mi, not `{said}`") from None
    if memory < 1:
        raise CannotRunError(
            "--policy-trial-memory takes more than nothing; --policy-trial-cpu 0 tries nothing"
        )
    return TrialLimits(cpu, memory, max_cost=arguments.max_cost_per_decision)


def _repository(arguments: argparse.Namespace) -> "SyncSettings | None":
    if not arguments.policies_repo:
        return None
    from koordpolicy.cli.repository import repository_settings  # noqa: PLC0415

    directory = arguments.policies_dir or (
        arguments.state_dir and str(Path(arguments.state_dir, "repository"))
    )
    if not directory:
        raise CannotRunError("--policies-repo needs --policies-dir or --state-dir, to be kept there")
    return repository_settings(arguments, arguments.policies_repo, Path(directory), prefix="policies-")
