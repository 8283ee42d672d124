"""What changed since somebody looked, against a plain list of all that happened."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.cluster.change_log import ChangeLog

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
STEPS = st.lists(st.tuples(st.sampled_from(["note", "note", "note", "forget", "look"]), NAMES), max_size=40)


@given(STEPS)
def test_every_reader_learns_of_every_change_since_it_looked(steps: list[tuple[str, str]]) -> None:
    log = ChangeLog()
    readers: list[tuple[int, int]] = []
    happened: list[tuple[str, str]] = []
    for what, name in steps:
        if what == "look":
            readers.append((log.number, len(happened)))
        else:
            happened.append((what, name))
            log.note(name) if what == "note" else log.forget(name)
        for number, seen in readers:
            later = happened[seen:]
            found = log.since(number)
            if any(kind == "forget" for kind, _ in later):
                assert found is None
            else:
                assert found == list(dict.fromkeys(changed for _, changed in reversed(later)))
