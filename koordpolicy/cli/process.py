"""The flags that all long-running commands share, and how such a command is run."""

import argparse
import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.max_cost import add_max_cost
from koordpolicy.cli.repository import add_repository_flags, repository_settings
from koordpolicy.cli.serving import add_serving_flags, http_of
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.apiserver import GRACE
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.runtime.component import NAMESPACE, Settings, state_directory_problem
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.process import Process, run_process
from koordpolicy.runtime.trial import Rehearse, TrialLimits, start_trials
from koordpolicy.source.git.sync import SyncSettings

EPILOG = "exit code: 0 stopped when told to, 1 failed, 2 could not start"


def add_process_flags(parser: argparse.ArgumentParser, *, elects: bool = True, port: int = 8080) -> None:
    """Declare them; `elects` says whether replicas elect a leader, `port` where status is served by default."""
    policies = parser.add_argument_group("policies").add_mutually_exclusive_group()
    policies.add_argument(
        "-p",
        "--policies",
        metavar="PATH",
        default="",
        help="directory, git-sync link or volume to follow (default: the built-in pack alone)",
    )
    policies.add_argument(
        "--policies-from-cluster", action="store_true", help="follow the policy objects in the cluster"
    )
    policies.add_argument(
        "--policies-repo", metavar="URL", default="", help="follow a Git repository (HTTPS, SSH, or a path)"
    )
    repository = parser.add_argument_group("the repository of --policies-repo")
    repository.add_argument(
        "--policies-dir",
        metavar="DIR",
        default="",
        help="keep it there, a directory of its own (default: `repository` in --state-dir)",
    )
    add_repository_flags(repository, "policies-")
    repository.add_argument(
        "--policies-webhook-secret-file",
        metavar="FILE",
        type=Path,
        help="serve POST /webhook, which syncs at once, for those who know this secret",
    )
    parser.add_argument(
        "--no-policy-tests", action="store_true", help="take revisions whose policy tests fail"
    )
    trial = TrialLimits()
    parser.add_argument(
        "--policy-trial-cpu",
        metavar="SECONDS",
        type=float,
        default=trial.cpu,
        help="CPU time in which a revision must compile, pass its tests and be evaluated, in a process of its own"
        f" beforehand; 0 takes revisions untried (default: {trial.cpu:g})",
    )
    parser.add_argument(
        "--policy-trial-memory",
        metavar="QUANTITY",
        default=f"{trial.memory >> 20}Mi",
        help="memory that it may take for that, such as 512Mi; never more than 80 %% of what the container has left"
        f" (default: {trial.memory >> 20}Mi)",
    )
    add_max_cost(parser)
    parser.add_argument(
        "--state-dir", metavar="DIR", default="", help="keep the last good policies there, for restarts"
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--kubeconfig", metavar="FILE", help="default: KUBECONFIG, ~/.kube/config, the pod's service account"
    )
    cluster.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    cluster.add_argument(
        "--namespace", metavar="NAME", default=NAMESPACE, help=f"namespace of koordpolicy ({NAMESPACE})"
    )
    if elects:
        cluster.add_argument(
            "--leader-elect",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="work only while leading, when there are several replicas (default: yes)",
        )
    add_serving_flags(parser.add_argument_group("serving"), f"127.0.0.1:{port}")
    shown = parser.add_argument_group("observing")
    shown.add_argument(
        "--unready-after",
        metavar="SECONDS",
        type=float,
        default=GRACE,
        help="/readyz says so when the API server has not answered, or has refused us, for so long"
        f" (default: {GRACE:g})",
    )
    shown.add_argument(
        "--log-format", choices=[str(one) for one in LogFormat], default="text", help="of the log (text)"
    )
    shown.add_argument("--verbose", action="store_true", help="log more")
    shown.add_argument(
        "--decision-log", metavar="FILE", default="", help="write decisions there as JSON lines; - is stdout"
    )
    shown.add_argument(
        "--decision-log-every",
        metavar="N",
        type=int,
        default=100,
        help="write each N-th decision of a name (default: 100)",
    )
    shown.add_argument(
        "--decision-log-size",
        metavar="SIZE",
        default="100Mi",
        help="put the file aside as FILE.1 before it grows larger, in place of the one before; 0 lets it grow (100Mi)",
    )
    shown.add_argument(
        "--instance",
        metavar="NAME",
        default=os.uname().nodename,
        help="what tells this replica from others (default: the host's name, which is the pod's)",
    )


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
    )


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
    trials = start_trials(limits, rehearse) if limits.cpu and settings.follows_policies else None
    with trials or nullcontext():
        tried = replace(settings, trials=trials)
        return run_process(lambda process: main(process, tried), component, arguments.instance)


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


def _repository(arguments: argparse.Namespace) -> SyncSettings | None:
    if not arguments.policies_repo:
        return None
    directory = arguments.policies_dir or (
        arguments.state_dir and str(Path(arguments.state_dir, "repository"))
    )
    if not directory:
        raise CannotRunError("--policies-repo needs --policies-dir or --state-dir, to be kept there")
    return repository_settings(arguments, arguments.policies_repo, Path(directory), prefix="policies-")
