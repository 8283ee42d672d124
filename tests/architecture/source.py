"""The project's source files, as the checks of this folder look at them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "koordpolicy"


@dataclass(frozen=True)
class Source:
    """One Python file of the package."""

    path: Path

    @property
    def name(self) -> str:
        """Its path in the checkout."""
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def module(self) -> str:
        """Its dotted name; a package's own is that of its folder."""
        return ".".join(self.path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")

    @property
    def part(self) -> str:
        """The part of the house it belongs to: the first folder, or the module's name at the package's root."""
        return self.path.relative_to(PACKAGE).with_suffix("").parts[0]

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name, feature_version=(3, 11))

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and dotted name of everything imported, inside functions and for type checking too.

        `from a.b import c` gives `a.b.c`: whether `c` is a module or a name does not matter here.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}:{node.lineno}: imports are absolute"
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def attributes(self) -> Iterator[tuple[int, str]]:
        """Line and text of every dotted access that begins with a plain name, such as `os.environ`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                parts = [node.attr]
                inner = node.value
                while isinstance(inner, ast.Attribute):
                    parts.append(inner.attr)
                    inner = inner.value
                if isinstance(inner, ast.Name):
                    yield node.lineno, ".".join([inner.id, *reversed(parts)])

    def texts(self) -> Iterator[tuple[int, str]]:
        """Line and value of every string in the code. Docstrings and the like are left out."""
        prose = {
            id(node.value)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                yield node.lineno, node.value


SOURCES = [Source(path) for path in sorted(PACKAGE.rglob("*.py"))]
