"""What is written on the way down, while parents and children still differ."""

from dataclasses import dataclass

from koordpolicy.linux.cgroups.hierarchy import LocatedFile
from koordpolicy.linux.files.forms import UNLIMITED, FileValue
from koordpolicy.linux.files.kernel_file import MergeRule


@dataclass(frozen=True, slots=True)
class Meeting:
    """Between what a file says and what it is to say: the text to write `now`, None for nothing yet.

    `final`: that is the end of it; otherwise it is written on the way up.
    """

    now: str | None
    final: bool


def meeting(place: LocatedFile, content: str, text: str) -> Meeting:
    """What is written now, by the file's merge rule. What cannot be compared is written at once."""
    form = place.entry.form
    try:
        current, wanted = form.parse(content), form.parse(text)
    except ValueError:
        return Meeting(text, final=True)
    if (
        place.file.merge is MergeRule.UNION
        and isinstance(current, frozenset)
        and isinstance(wanted, frozenset)
    ):
        if wanted >= current:
            return Meeting(text, final=True)
        return Meeting(None if wanted <= current else form.render(current | wanted), final=False)
    if place.file.merge is MergeRule.LARGER and not _at_least(wanted, current):
        return Meeting(None, final=False)
    return Meeting(text, final=True)


def _at_least(wanted: FileValue, current: FileValue) -> bool:
    if not isinstance(wanted, int) or not isinstance(current, int):
        return True
    return wanted == UNLIMITED or (current != UNLIMITED and wanted >= current)
