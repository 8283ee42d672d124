"""Places: what stands where in a YAML document, before anybody knows what it means."""

from dataclasses import dataclass

Scalar = str | int | float | bool | None
Data = Scalar | list["Data"] | dict[str, "Data"]


@dataclass(slots=True, eq=False)
class Place:
    """One node of a document.

    `start:end` are code-point offsets in the file, without anchor and tag. A block scalar's text may
    go on to `text_end`, over blank lines that belong to it but to no underlined stretch. `style` is
    `'`, `"`, `|`, `>` or empty for a plain scalar, and `None` for a collection.

    A mapping has `keys` and `children` by key, a sequence `children` by index. `merges` are the `<<`
    keys of a mapping with what stands there; the entries they bring are among `keys` and `children`.
    For an alias `origin` is the anchored place: text is found there, while `start:end` is the alias
    itself. `weight` counts the nodes below, aliases expanded. A `faulty` place holds a stand-in for
    what has been reported already.
    """

    start: int
    end: int
    data: Data
    style: str | None = None
    keys: "dict[str, Place] | None" = None
    children: "dict[str, Place] | list[Place] | None" = None
    origin: "Place | None" = None
    weight: int = 1
    text_end: int | None = None
    merges: "tuple[tuple[Place, Place], ...]" = ()
    faulty: bool = False

    def child(self, step: str | int) -> "Place | None":
        """The value under a key or index, if there is one."""
        children = self.children
        if isinstance(children, dict):
            return children.get(step) if isinstance(step, str) else None
        if isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children):
            return children[step]
        return None
