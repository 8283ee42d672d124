"""One name for one thing: what a public class is called is enough to find it."""

import ast
from collections import defaultdict

from tests.architecture.source import SOURCES


def test_no_two_public_classes_of_a_package_share_a_name() -> None:
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for source in SOURCES:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[source.part, node.name].append(source.name)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert shared == {}
