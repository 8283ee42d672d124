"""The project's source files, as the checks of this folder look at them."""

import ast
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

    @property
    def tree(self) -> ast.Module:
        """Parsed anew: all of them together are millions of objects, which whatever is tested afterwards would carry."""
        return ast.parse(self.text, self.name, feature_version=(3, 11))

    @cached_property
    def _found(self) -> "_Found":
        return _found(self)

    def imports(self) -> tuple["Place", ...]:
        """Line and dotted name of everything imported, inside functions and for type checking too.

        `from a.b import c` gives `a.b.c`: whether `c` is a module or a name does not matter here.
        """
        return self._found.imports

    def attributes(self) -> tuple["Place", ...]:
        """Line and text of every dotted access that begins with a plain name, such as `os.environ`."""
        return self._found.attributes

    def texts(self) -> tuple["Place", ...]:
        """Line and value of every string in the code. Docstrings and the like are left out."""
        return self._found.texts


Place = tuple[int, str]
"""A line, and what stands there."""


@dataclass(frozen=True)
class _Found:
    """What the checks ask of a file."""

    imports: tuple[Place, ...]
    attributes: tuple[Place, ...]
    texts: tuple[Place, ...]


def _found(source: Source) -> _Found:
    nodes = list(ast.walk(source.tree))
    prose = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    imports: list[Place] = []
    attributes: list[Place] = []
    texts: list[Place] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            imports += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.name}:{node.lineno}: imports are absolute"
            imports += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute):
            if (dotted := _dotted(node)) is not None:
                attributes.append((node.lineno, dotted))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            texts.append((node.lineno, node.value))
    return _Found(tuple(imports), tuple(attributes), tuple(texts))


def _dotted(node: ast.Attribute) -> str | None:
    parts = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else None


SOURCES = [Source(path) for path in sorted(PACKAGE.rglob("*.py"))]
