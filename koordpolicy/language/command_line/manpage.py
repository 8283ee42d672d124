"""The manual page of the command line in the language of `man`, made from its parser."""

import argparse
import re

from koordpolicy.language.command_line.arguments import arguments_of, help_of, subparsers, value_of

_EXITS = (
    ("0", "all is well"),
    ("1", "there are findings"),
    ("2", "it could not run"),
    ("3", "policy tests fail (koordpolicy test)"),
    ("4", "the revisions differ (koordpolicy diff --exit-code)"),
)


def manpage(parser: argparse.ArgumentParser, version: str) -> str:
    """One page, section 1, ending with a line break."""
    name = parser.prog
    lines = [
        f'.TH {name.upper()} 1 "" "{name} {_text(version)}" "User Commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        _text(f"{name} \u2013 {(parser.description or name).rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {name}",
        ".I COMMAND",
        "[\\fIARGUMENT\\fR...]",
        ".SH OPTIONS",
        *_arguments(parser),
        ".SH COMMANDS",
    ]
    for command, one in subparsers(parser).items():
        lines += _command(command, one)
    lines.append(".SH EXIT STATUS")
    for number, meaning in _EXITS:
        lines += [".TP", f".B {number}", _text(meaning)]
    lines += [
        ".SH SEE ALSO",
        _text("koordpolicy explain TOPIC has a page on each kind, fact, function and finding."),
    ]
    return "\n".join(lines) + "\n"


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    lines = [f'.SS "{_text(name)}"']
    lines += [_text(parser.description)] if parser.description else []
    lines += _arguments(parser)
    lines += [".PP", _text(parser.epilog)] if parser.epilog else []
    for inner, one in subparsers(parser).items():
        lines += _command(f"{name} {inner}", one)
    return lines


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    lines = []
    for action in arguments_of(parser):
        value = value_of(action)
        said = [f"\\fB{_escaped(option)}\\fR" for option in action.option_strings]
        shown = (
            ", ".join(said)
            + (" " if said and value else "")
            + (f"\\fI{_escaped(value)}\\fR" if value else "")
        )
        lines += [".TP", shown, _text(help_of(action) or " ")]
    return lines


def _text(words: str) -> str:
    """Words as one line of the page, in which nothing is a request."""
    line = _escaped(" ".join(words.split()))
    return f"\\&{line}" if line[:1] in (".", "'") else line


def _escaped(words: str) -> str:
    plain = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"[^\x20-\x7e]", lambda found: f"\\[u{ord(found.group()):04X}]", plain)
