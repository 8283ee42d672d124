"""Type parameters: what fits where, what holds both, and that no type comes to hold itself."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MEMORY,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
    record,
    type_of,
)
from koordpolicy.language.cel.unify import Unifier

PLAIN = st.sampled_from(
    [BOOL, INT, UINT, DOUBLE, STRING, TIMESTAMP, DURATION, CPU, MEMORY, record("node"), DYN, NULL]
)


def _within(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        inner.map(list_of),
        inner.map(optional_of),
        inner.map(type_of),
        st.builds(map_of, st.sampled_from([INT, STRING]), inner),
    )


types = st.recursive(PLAIN, _within, max_leaves=4)


def open_to(type: Type, unifier: Unifier) -> Type:
    """The type with every dyn replaced by a fresh parameter."""
    if type == DYN:
        return unifier.fresh()
    return Type(type.name, tuple(open_to(each, unifier) for each in type.params), type.unit, type.record)


@given(types)
def test_a_type_fits_itself(kind: Type) -> None:
    assert Unifier().fits((kind,), (kind,))
    assert Unifier().join(kind, kind) == kind


@given(types)
def test_anything_fits_dyn_and_dyn_fits_anything(kind: Type) -> None:
    assert Unifier().fits((kind, DYN), (DYN, kind))


@given(types, types)
def test_a_join_holds_both(one: Type, other: Type) -> None:
    joined = Unifier().join(one, other)
    back = Unifier().join(other, one)
    assert (joined is None) == (back is None)
    if joined is not None:
        assert Unifier().fits((one, other), (joined, joined))


@given(types)
def test_a_parameter_becomes_what_is_put_in_its_place(kind: Type) -> None:
    unifier = Unifier()
    (wanted,) = unifier.instance([list_of(param("T"))])
    assert unifier.fits((list_of(kind),), (wanted,))
    assert unifier.resolved(wanted) == list_of(kind)


@given(types, types)
def test_what_does_not_fit_leaves_no_trace(one: Type, other: Type) -> None:
    unifier = Unifier()
    first, second = unifier.instance([param("T"), param("U")])
    if unifier.fits((one, INT), (first, STRING)):
        raise AssertionError("an int is no string")
    assert unifier.resolved(first) == first
    assert unifier.fits((other,), (second,))


@given(types)
def test_no_type_holds_itself(kind: Type) -> None:
    unifier = Unifier()
    free = unifier.fresh()
    assert not unifier.fits((free,), (list_of(free),))
    other = unifier.fresh()
    assert unifier.fits((free,), (other,))
    assert not unifier.fits((other,), (map_of(STRING, free),))
    assert unifier.fits((kind,), (free,))
    assert unifier.final(other) == unifier.final(free)


@given(types)
def test_nothing_stays_open_in_the_end(kind: Type) -> None:
    unifier = Unifier()
    assert unifier.final(open_to(kind, unifier)) == kind


def test_units_are_part_of_a_type() -> None:
    assert not Unifier().fits((CPU,), (INT,))
    assert not Unifier().fits((CPU,), (MEMORY,))
    assert Unifier().join(list_of(CPU), list_of(MEMORY)) is None


def test_a_parameter_widens_to_what_is_least_known() -> None:
    unifier = Unifier()
    (wanted,) = unifier.instance([param("T")])
    assert unifier.fits((INT, DYN), (wanted, wanted))
    assert unifier.resolved(wanted) == DYN


def test_null_goes_with_times_and_optionals_only() -> None:
    assert Unifier().join(NULL, record("node")) == record("node") == Unifier().join(record("node"), NULL)
    for kind in (TIMESTAMP, DURATION, optional_of(INT)):  # of which null is none: only run time knows
        assert Unifier().join(NULL, kind) == DYN == Unifier().join(kind, NULL)
    for kind in (INT, STRING, list_of(INT), map_of(STRING, INT), BOOL):
        assert Unifier().join(NULL, kind) is None
