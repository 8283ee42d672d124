"""Every permission of a process has a test that asks for it, and every line of the table a permission."""

from tests.roles.permissions import exists, granted, read_needs


def test_permissions_are_those_that_tests_need() -> None:
    """`python -m tests.roles asked` writes the table; a permission that nobody needs is taken away."""
    needs, permissions = read_needs(), set(granted())
    assert {str(one) for one in permissions - needs.keys()} == set()
    assert {str(one) for one in needs.keys() - permissions} == set()


def test_the_tests_are_there() -> None:
    assert {file for files in read_needs().values() for file in files if not exists(file)} == set()
