"""All of `koordpolicy COMMAND ...` but the process state it (`start.py`)."""

import argparse
import re
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from koordpolicy import __version__
from koordpolicy.cli.command import CANNOT_RUN, CannotRunError, Usage
from koordpolicy.cli.terminal import CannotWriteError, Terminal
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.command_line.arguments import arguments_of, subparsers

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from koordpolicy.graph import Compiler

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "check": "find what is wrong with policies",
        "test": "run the policy tests, with coverage",
        "fmt": "bring policy files into their canonical layout",
        "explain": "explain a diagnostic code, a decision, a kind, a fact, a function or a pod",
        "graph": "draw the rule graph, or list its decisions",
        "diff": "show which decisions change between two revisions, with examples",
        "comment": "write a difference as a comment on the merge request of a CI job, or edit the one that is there",
        "prove": "prove what must hold whatever a cluster does, or show where it does not",
        "snapshot": "save what policies read of a live cluster, without secrets",
        "status": "show what runs in a cluster by which revision, what is refused, lent and held back",
        "doctor": "find what keeps koordpolicy from working in a cluster, and what to do about it",
        "rollout": "follow how revisions go live, pause, resume or abort them",
        "simulate": "run a workload on virtual time by policies that are not live yet",
        "tune": "search values that policies mark as tunable, by simulation, and write what is best as a patch",
        "demo": "a co-located day of 100 nodes in the embedded cluster",
        "console": "look at a cluster in a browser: over time, why things are as they are, what policies decide",
        "manager": "publish what nodes can offer a second time, in a cluster",
        "front": "hold API servers' connections before a manager's webhooks, which then lose no review when it is killed",
        "scheduler": "place the pods of a cluster by policy",
        "descheduler": "let pods leave the nodes that they should not be on",
        "yarn-operator": "let a Hadoop YARN use batch resources of nodes that pods leave",
        "agent": "measure a node, report it, and keep its kernel as policies say",
        "runtime-proxy": "stand between kubelet and container runtime, and ask hooks about what is started",
        "recommend": "show what workloads should request, and write it as patches for manifests in Git",
        "sync": "keep a directory in step with a Git repository",
        "schema": "print or write the JSON Schemas and CRDs of the kinds",
        "lsp": "speak the Language Server Protocol: findings, meanings and names in an editor",
        "import": "make policies of Koordinator's configuration",
        "export": "write policies back as Koordinator's configuration",
        "init": "begin a repository of policies: bundle, tests, CI, hooks",
        "completion": "print what makes a shell complete commands and flags",
        "man": "print the manual page for `man`",
    }
)
"""What each command does, in the order of `--help`, which imports none of them: `flags/` says what each takes."""


def usage_of(name: str) -> Usage:
    """What a command takes: to say so, nothing is imported that does its work."""
    usage: Usage = import_module(f"koordpolicy.cli.flags.{module_of(name)}").USAGE
    return usage


def module_of(name: str) -> str:
    """The name of a command's modules."""
    return name.replace("-", "_")


def parser(known: Container[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the whole command line, which the manual is made from as well.

    Of commands that are not `known` it has the names alone: enough for `--help`, and none of them is imported.
    """
    whole = _Parser(
        prog="koordpolicy", description="Kubernetes co-location as policies in Git.", allow_abbrev=False
    )
    whole.add_argument("--version", action="version", version=f"koordpolicy {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name not in known:
            commands.add_parser(name, help=summary)
            continue
        usage = usage_of(name)
        one = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=usage.epilog,
            allow_abbrev=False,
        )
        usage.add(one)
        one.set_defaults(whole=parser)
    return whole


def main(
    arguments: Sequence[str] | None = None,
    terminal: Terminal | None = None,
    compiler: "Compiler | None" = None,
    ready: Callable[[], None] | None = None,
) -> int:
    """Run a command and give its exit code: 0 well, 1 findings, 2 could not run, or as the command says.

    A `compiler` that is handed in keeps what it has compiled for the next call. `ready` is called before the command
    begins its work.
    """
    terminal = terminal or Terminal()
    words = _with_values(sys.argv[1:] if arguments is None else arguments)
    command = ""
    try:
        try:
            for name in _named(words):
                _demand_command(name)
            given, unknown = parser(_named(words)).parse_known_args(words)
            command = f" {given.command}"
            given.command_line = tuple(words)  # for reports that say how they were made
            if unknown and (unknown := _left_over(given, unknown)):
                raise CannotRunError(_unknown(given.command, unknown[0]))
            run = import_module(f"koordpolicy.cli.{module_of(given.command)}").run
            if usage_of(given.command).compiles:
                given.compiler = compiler or _compiler(getattr(given, "max_cost_per_decision", None))
            if ready is not None:
                ready()
            return int(run(given, terminal))
        finally:
            terminal.flush()
    except CannotRunError as error:
        terminal.complain(f"koordpolicy{command}: {error}")
    except CannotWriteError as error:
        terminal.complain(f"koordpolicy{command}: the output cannot be written: {error}")
    except BrokenPipeError:
        pass  # the reader has seen enough (`| head`)
    except OSError as error:
        place = f"`{error.filename}`: " if isinstance(error.filename, str) else ""
        terminal.complain(f"koordpolicy{command}: {place}{error.strerror or error}")
    return CANNOT_RUN


class _Parser(argparse.ArgumentParser):
    """Help that cannot be written is no success; and what is wrong is said in a line, without all that would be right."""

    def error(self, message: str) -> NoReturn:
        """End the process, as kubectl has it; `-h` shows the usage that argparse would put before it."""
        Terminal().complain(f"{self.prog}: {message}\nSee '{self.prog} --help'.")
        self.exit(CANNOT_RUN)

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if message and file is sys.stdout:
            Terminal().print(message)
        else:
            super()._print_message(message, file)


def _with_values(words: Sequence[str]) -> list[str]:
    """The words, those flags with their values that begin like another one: `--until -1h`, where it is for the flag to say what
    is wrong with that.
    """
    found: list[str] = []
    for word in words:
        if re.match(r"-\.?\d", word) and found and found[-1].startswith("--") and "=" not in found[-1]:
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _named(words: Sequence[str]) -> Sequence[str]:
    """The command among the words, if any: no flag before it takes a value."""
    return [word for word in words if not word.startswith("-")][:1]


def _demand_command(name: str) -> None:
    """Raise `CannotRunError` for a command that there is not."""
    if name not in COMMANDS:
        close = nearest(name, COMMANDS)
        remedy = f"did you mean `{close}`?" if close else "`koordpolicy --help` lists all"
        raise CannotRunError(f"there is no command `{name}`; {remedy}")


def _left_over(given: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """Hand a word to an argument that may be left out and was: argparse does not look for one behind a flag, as in
    `explain pod -n shop NAME`. What no argument takes is given back.
    """
    left = list(words)
    for action in arguments_of(subparsers(parser((given.command,)))[given.command]):
        missing = (
            action.nargs == "?"
            and not action.option_strings
            and action.default == getattr(given, action.dest)
        )
        if missing and left and not left[0].startswith("-"):
            setattr(given, action.dest, left.pop(0))
    return left


def _unknown(command: str, word: str) -> str:
    """What is said of a word that a command does not take."""
    actions = arguments_of(subparsers(parser((command,)))[command])
    flags = [flag for action in actions for flag in action.option_strings]
    listed = f"`koordpolicy {command} --help` lists what it takes"
    if not word.startswith("-"):
        return f"`{word}` is one argument too many; {listed}"
    flag = word.partition("=")[0]
    files = next((one for one in actions if not one.option_strings and one.metavar in _FILES), None)
    if flag in _FILE_FLAGS and files is not None:
        return f"there is no flag `{flag}`: files and directories are named without one, as in `koordpolicy {command} {files.metavar}`"
    close = nearest(flag, flags)
    return f"there is no flag `{flag}`; " + (f"did you mean `{close}`?" if close else listed)


_FILES: Final = ("PATH", "FILE", "DIRECTORY")
_FILE_FLAGS: Final = ("-f", "--file", "--filename")
"""As kubectl has it: what a habit writes where a command takes its files without a flag."""


def _compiler(max_cost: int | None) -> "Compiler":
    """What compiles for a command; imported only when the words make sense, and under `seldom`."""
    from koordpolicy.runtime.policies.pack_cache import pack_remembering  # noqa: PLC0415  # see above

    return pack_remembering(max_cost)
