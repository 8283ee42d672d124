"""The page of commands, from the parser of the command line."""

import argparse

from koordpolicy.language.manual.markdown import code, table

_INTRODUCTION = """# Commands

| a command ends with | when |
|---|---|
| 0 | all is well |
| 1 | there are findings |
| 2 | it could not run |
| 3 | policy tests fail (`koordpolicy test`) |
| 4 | the revisions differ (`koordpolicy diff --exit-code`) |
"""


def commands_page(parser: argparse.ArgumentParser) -> str:
    """The page, ending with a line break."""
    general = _arguments(parser)
    parts = [_INTRODUCTION, *([general] if general else [])]
    parts += [_command(name, one) for name, one in _subparsers(parser).items()]
    return "\n".join(parts)


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    arguments = _arguments(parser)
    texts = [f"## koordpolicy {name}\n", f"{parser.description}\n" if parser.description else ""]
    texts += [arguments, f"{parser.epilog}\n" if parser.epilog else ""]
    texts += [_command(f"{name} {inner}", one) for inner, one in _subparsers(parser).items()]
    return "\n".join(text for text in texts if text)


def _arguments(parser: argparse.ArgumentParser) -> str:
    rows = [(_usage(action), _help(action)) for action in _actions(parser) if _shown(action)]
    return table(("argument", "meaning"), rows) if rows else ""


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse gives its arguments away in no other form than laid out for one terminal.
    return parser._actions  # noqa: SLF001


def _shown(action: argparse.Action) -> bool:
    # A test for the private class is the only way to tell help and subcommands from other arguments.
    hidden = (argparse._SubParsersAction, argparse._HelpAction)  # noqa: SLF001
    return not isinstance(action, hidden) and action.help != argparse.SUPPRESS


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            found.update(action.choices)
    return found


def _usage(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return code(value)
    return ", ".join(code(f"{option} {value}".strip()) for option in action.option_strings)


def _value(action: argparse.Action) -> str:
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


def _help(action: argparse.Action) -> str:
    words = action.help or ""
    return words % {**vars(action), "prog": "koordpolicy"} if "%" in words else words
