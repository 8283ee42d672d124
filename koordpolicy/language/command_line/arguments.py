"""Arguments of a parser, as pages show them."""

import argparse


def arguments_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments that pages show, in the order of their declaration: no help, no subcommands, nothing hidden."""
    return [action for action in _actions(parser) if _shown(action)]


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands by name."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            found.update(action.choices)
    return found


def value_of(action: argparse.Action) -> str:
    """The name of an argument's value as usage shows it, with what may be repeated or left out."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        name = "{" + ",".join(str(choice) for choice in action.choices) + "}"
    elif isinstance(action.metavar, tuple):
        name = " ".join(action.metavar)
    else:
        name = action.metavar or action.dest.upper()
    forms = {"?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}
    return forms.get(str(action.nargs), name)


def help_of(action: argparse.Action) -> str:
    """What help says of an argument."""
    words = action.help or ""
    return words % {**vars(action), "prog": "koordpolicy"} if "%" in words else words


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse gives its arguments away in no other form than laid out for one terminal.
    return parser._actions  # noqa: SLF001


def _shown(action: argparse.Action) -> bool:
    # A test for the private class is the only way to tell help and subcommands from other arguments.
    hidden = (argparse._SubParsersAction, argparse._HelpAction)  # noqa: SLF001
    return not isinstance(action, hidden) and action.help != argparse.SUPPRESS
