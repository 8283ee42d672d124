"""The page of kinds: what each document may say."""

from collections.abc import Iterable

from koordpolicy.language.kinds import API_VERSION, KINDS, Kind, PolicySpec
from koordpolicy.language.kinds.actors import ACTORS, asked_by
from koordpolicy.language.manual.examples import EXAMPLES
from koordpolicy.language.manual.fields import FieldEntry, fields_of
from koordpolicy.language.manual.markdown import anchor, code, table

_INTRODUCTION = f"""# Kinds of policy documents

Every document has `apiVersion: {API_VERSION}`, `kind`, `metadata` with a `name` (and `labels`, `annotations`),
and a `spec` with the fields below. `[]` stands for each element of a list, `<key>` for each key of a mapping.
The last column says which process of a cluster or which command acts on a field, and which one is awaited; `compiler`
stands for all of them. A field marked ○ is a decision: its value is a literal or `{{cel: expression}}`, and several documents may
set it; [decisions.md](decisions.md) says how they meet.

Quantities are written as in Kubernetes: cpu in cores (`4`, `500m`), bytes (`200Mi`), percent (`65%`), duration
(`15m`, `1h30m`), bandwidth in bits per second (`50M`). Scalars follow the core schema of YAML 1.2: `yes`, `no`,
`on` and `off` are texts, `true` and `false` are not.
"""


def kinds_page() -> str:
    """The page, ending with a line break."""
    index = "".join(f"- [{kind.name}](#{anchor(kind.name)}): {kind.summary}\n" for kind in KINDS.values())
    shared = (
        "## Shared fields\n\nKinds that contribute rules have these fields besides their own.\n\n"
        + _table(fields_of(PolicySpec), None)
    )
    return "\n".join([_INTRODUCTION, index, shared, *(_kind(kind) for kind in KINDS.values())])


def _kind(kind: Kind) -> str:
    facts = []
    if kind.components:
        facts.append(f"Asked by: {asked_by(kind.components)}.")
    else:
        facts.append("Read by the compiler.")
    if kind.roots:
        facts.append(f"Expressions may name: {', '.join(code(root) for root in sorted(kind.roots))}.")
    if kind.selectors:
        facts.append(f"Selectors of `match` that say something: {', '.join(sorted(kind.selectors))}.")
    fields = fields_of(kind.spec)
    if kind.has_rules:
        facts.append("It has the [shared fields](#shared-fields) too.")
        shared = PolicySpec.model_fields.keys()
        fields = (field for field in fields if field.path.partition(".")[0].removesuffix("[]") not in shared)
    example = f"```yaml\n{EXAMPLES[kind.name]}```\n\n"
    return f"## {kind.name}\n\n{kind.summary}\n\n{example}{' '.join(facts)}\n\n" + _table(fields, kind)


def _table(fields: Iterable[FieldEntry], kind: Kind | None) -> str:
    rows = (
        (
            code(field.path),
            field.form + (" (required)" if field.required else ""),
            field.default,
            field.meaning,
            *(() if kind is None else (_actor(kind, field),)),
        )
        for field in fields
    )
    head = ("field of `spec`", "form", "default", "meaning")
    return table(head if kind is None else (*head, "acts"), rows)


def _actor(kind: Kind, field: FieldEntry) -> str:
    return ACTORS[kind.name, field.path.replace(".<key>", "<key>")].words
