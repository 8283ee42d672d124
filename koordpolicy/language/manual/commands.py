"""The page of commands, from the parser of the command line."""

import argparse

from koordpolicy.language.command_line.arguments import arguments_of, help_of, subparsers, value_of
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
    parts += [_command(name, one) for name, one in subparsers(parser).items()]
    return "\n".join(parts)


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    arguments = _arguments(parser)
    texts = [f"## koordpolicy {name}\n", f"{parser.description}\n" if parser.description else ""]
    texts += [arguments, f"{parser.epilog}\n" if parser.epilog else ""]
    texts += [_command(f"{name} {inner}", one) for inner, one in subparsers(parser).items()]
    return "\n".join(text for text in texts if text)


def _arguments(parser: argparse.ArgumentParser) -> str:
    rows = [(_usage(action), help_of(action)) for action in arguments_of(parser)]
    return table(("argument", "meaning"), rows) if rows else ""


def _usage(action: argparse.Action) -> str:
    value = value_of(action)
    if not action.option_strings:
        return code(value)
    return ", ".join(code(f"{option} {value}".strip()) for option in action.option_strings)
