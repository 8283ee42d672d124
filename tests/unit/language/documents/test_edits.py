"""What is put into a decoded string is found in it when the file is read again."""

from hypothesis import assume, given
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics, Fix, Position, Span
from koordpolicy.language.documents import Lines, TextMap, read_documents
from koordpolicy.language.documents.edits import applied, replaced
from tests.unit.language.documents.test_text import HEADS, PIECES, TAILS, texts_of

REPLACEMENTS = st.sampled_from(
    ["", "x", "==", "&&", "a.?b", "'k'", '"k"', "\\d", " # ", ": ", ", ", "[", "&a", "*b", "é😀", "- ", "1"]
)


@given(
    HEADS,
    st.lists(PIECES, max_size=10).map("".join),
    TAILS,
    REPLACEMENTS,
    st.integers(0, 30),
    st.integers(0, 5),
)
def test_a_replacement_is_read_again(
    head: str, body: str, tail: str, new: str, start: int, length: int
) -> None:
    text = head + body + tail
    found = Diagnostics()
    documents = read_documents("f", text, found)
    assume(documents and not list(found))
    for document in documents:
        for place in texts_of(document.positions.root, set()):
            value = place.data
            assert isinstance(value, str) and place.style is not None
            first, last = min(start, len(value)), min(start + length, len(value))
            lines = document.positions.lines
            whole = TextMap(lines, place.start, place.text_end or place.end, place.style, value)
            edit = replaced(whole, first, last, new)
            if edit is None:
                continue
            edited, done = applied(lines, [Fix("", *edit)])
            assert len(done) == 1
            again = read_documents("f", edited, found)
            assert not list(found), (text, edited)
            values = [one.data for one in texts_of(again[document.index].positions.root, set())]
            assert value[:first] + new + value[last:] in values, (text, edited)


def test_edits_that_touch_each_other_wait_for_another_time() -> None:
    lines = Lines("f", "abc\ndef\n")

    def fix(line: int, start: int, end: int, new: str) -> Fix:
        return Fix("", Span("f", Position(line, start), Position(line, end)), new)

    fixes = [
        fix(2, 1, 3, "D"),
        fix(1, 1, 2, "A"),
        fix(1, 1, 4, "never"),
        fix(1, 3, 3, "+"),
        fix(1, 3, 3, "-"),
    ]
    text, done = applied(lines, fixes)
    assert (text, len(done)) == ("Ab+c\nDf\n", 3)
    assert applied(lines, done[1:])[0] == "ab+c\nDf\n"
