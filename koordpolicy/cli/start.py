"""The process `koordpolicy`: what must stand before anything else is imported.

Imports take longer than it takes to press Ctrl-C, and standard streams can be closed, full, or of an encoding
that lacks characters: whatever is so, a command ends with an exit code and a sentence.
"""

import codecs
import io
import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""
TERMINATED = 143
"""The same of SIGTERM."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: what a command does then is what it does at an interrupt."""


def process() -> int:
    """`main` with the words the process was started with; its exit code."""
    try:
        set_up_streams()
        # An interrupt amid imports comes out as all kinds of errors. There is nothing to tidy up yet.
        heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if heeds:
            _leave_interrupts_to_the_system()
        from koordpolicy.cli.main import main  # noqa: PLC0415  # the longest part of a short command
        from koordpolicy.runtime.collector import seldom  # noqa: PLC0415

        os.environ.setdefault(
            "PYDANTIC_DISABLE_PLUGINS", "__all__"
        )  # looking for some takes longer than most imports
        with seldom():
            return main(ready=lambda: heed(interrupts=heeds))
    except KeyboardInterrupt as problem:
        with suppress(OSError):
            sys.stderr.write("\n")  # the line that the terminal wrote `^C` on, or one of progress
            sys.stderr.flush()
        return TERMINATED if isinstance(problem, Terminated) else INTERRUPTED
    finally:
        _drop_what_cannot_be_written()


def _leave_interrupts_to_the_system() -> None:
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except OSError:  # one came before this, and its handler was to run after it
        raise KeyboardInterrupt from None


def heed(*, interrupts: bool) -> None:
    """From now on SIGTERM is a `KeyboardInterrupt`, which may be tidied up after, and so is an interrupt, where not in vain:
    shells have what they start in the background pass over those.
    """
    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated


def set_up_streams() -> None:
    """Open what is closed, and let nothing be unwritable for its characters.

    A closed standard stream would be taken by the next file that is opened. In its place stands one that nothing
    can be read from, or written to.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    codecs.register_error("koordpolicy.escape", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="koordpolicy.escape")


def _drop_what_cannot_be_written() -> None:
    """Python would try again while it exits, complain, and end with an exit code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _escaped(error: UnicodeError) -> tuple[str, int]:
    r"""What an encoding lacks, as `\u00e4`: in JSON it means the same."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair, 'big'):04x}" for pair in pairs), error.end
