"""KP0xx: files that cannot be read as YAML documents."""

from koordpolicy.diagnostics.catalogue.code import Code

READING: tuple[Code, ...] = (
    Code.written(
        "KP001",
        "file cannot be read",
        explanation="""
            The file is missing, is not a regular file, may not be read by this user, is not encoded in UTF-8, or has a
            name that is not plain text: bytes that are not UTF-8, control characters, characters that do not show or
            that turn the reading direction. The message says which; such a name is shown with escapes, `pol\\xff.yaml`.
            """,
        why="""
            A revision is compiled as a whole. If a file that cannot be read were passed over, the cluster would run on
            part of what stands in Git, and nobody would notice.
            """,
        example="""
            # saved as Latin-1: the umlaut below is the single byte 0xFC
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata:
              name: default
              annotations: {koordpolicy.io/description: gilt für alle Knoten}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="""
            Check the path and its permissions. Convert a file in another encoding once, for example with
            `iconv -f LATIN1 -t UTF-8`, and let the editor save UTF-8.
            """,
        remedy="""
            # saved as UTF-8
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata:
              name: default
              annotations: {koordpolicy.io/description: gilt für alle Knoten}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP002",
        "YAML syntax",
        explanation="""
            The text is not YAML. Usual causes are a tab in the indentation, a missing space after a colon, an unclosed
            quote or bracket, and a plain value that begins with a character YAML keeps for itself (`*`, `&`, `!`, `%`,
            `@`, a backtick). An escape that makes half of a character (`"\\ud800"`) is another: no text can hold it.
            """,
        why="""
            YAML is positional: one wrong column can move a key into another mapping. So nothing of a document with a
            syntax error is used; other documents and files are still checked.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: !node.unschedulable}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Look at the marked place and at the line above it. Quote an expression that begins with `!` or contains
            `: ` or ` #`, or write it as a block with `|`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {condition: "!node.unschedulable"}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP003",
        "key stands twice",
        explanation="""
            One mapping has the same key two times. Many YAML tools keep the last one silently; here it is an error.
            """,
        why="""
            The two values usually come from a merge or from copying a block, and they differ. Which of them a reviewer
            had in mind, no program can know.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
              target: {cel: node.capacity.cpu * percent(50)}
            """,
        advice="Keep one of the two.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(50)}
            """,
    ),
    Code.written(
        "KP004",
        "file too large, too deep, or with too many aliases",
        explanation="""
            A file exceeds a limit of the reader: its length, its number of documents or values, the depth of its
            nesting, or what its aliases (`*name`) unfold to. The message names the limit.
            """,
        why="""
            A few lines of nested aliases can unfold to billions of values. The limits are far above what people write,
            and they keep one file from stopping every component that loads it.
            """,
        example="""
            a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
            b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
            c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
            d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
            e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
            f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
            g: [*f, *f, *f, *f, *f, *f, *f, *f, *f, *f]
            """,
        advice="""
            Split a long file by subject. Give values that repeat a name instead of an alias: a `Library` constant, or a
            parameter of the document that uses them.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              parameters: {share: {type: percent, value: 65%}}
              target: {cel: node.capacity.cpu * parameters.share}
            """,
    ),
    Code.written(
        "KP005",
        "not a mapping",
        explanation="""
            A mapping (`key: value` lines) is expected where a list, a text or a number stands: a whole document, or what
            a merge key (`<<`) refers to.
            """,
        why="Without its keys a document has no kind, so nothing can be said about the rest of it.",
        example="""
            - apiVersion: koordpolicy.io/v1alpha1
              kind: CPUSuppress
              metadata: {name: default}
              spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="Begin each document at the left margin, and separate several documents of one file by `---`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP006",
        "unknown tag",
        explanation="""
            A value carries a YAML tag such as `!include` or `!!python/object`. Policies know only the plain ones:
            `!!str`, `!!int`, `!!float`, `!!bool` and `!!null`.
            """,
        why="""
            Tags make a loader run code or read other files. A policy is data: what it means can be read from its
            text alone, and loading it can do no harm.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              mechanism: !literal cpuset
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Remove the tag and write the value. What several documents share belongs in a `Library` or in a parameter.
            An expression that begins with `!` needs quotes.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              mechanism: cpuset
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
)
