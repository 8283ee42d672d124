"""KP1xx: documents whose shape does not fit their kind."""

from koordpolicy.diagnostics.catalogue.code import Code

SCHEMA: tuple[Code, ...] = (
    Code.written(
        "KP101",
        "`apiVersion` or `kind` is missing",
        explanation="Every policy document says what it is with `apiVersion` and `kind`. This one lacks one of them.",
        why="""
            Without them a document is only data. A file that was meant to be a policy and is not recognised as one must
            not go unnoticed.
            """,
        example="""
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="""
            Add the missing line. YAML files that are no policies (values of a chart, workflows) belong outside the
            folders that the `PolicyBundle` reads.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP102",
        "unknown `apiVersion`",
        explanation="The document's `apiVersion` is not one that this version of koordpolicy reads.",
        why="""
            Another version may give the same words another meaning, so a document of an unknown version is not guessed
            at.
            """,
        example="""
            apiVersion: koordpolicy.io/v1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="""
            Write `koordpolicy.io/v1alpha1`. If the document was made for a newer koordpolicy, the components that load
            it have to be updated first.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP103",
        "unknown kind",
        explanation="There is no policy kind of this name. Kinds are written with capitals, as in `CPUSuppress`.",
        why="A misspelt kind would leave its decision to another rule, or to the built-in pack.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CpuSupress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="Take the name from the manual, or from the editor's completion (`koordpolicy schema` writes the schemas).",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP104",
        "unknown key",
        explanation="The kind has no such key at this place. Often the key is misspelt, or stands one level too high or too low.",
        why="""
            An unknown key would be ignored, and the value that its author set would never take effect: the most common
            and the quietest mistake in YAML configuration.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
              minimun: {cel: cpu("1")}
            """,
        advice="""
            Take the suggested name, or look the kind up in the manual. Notes of your own belong in comments or in
            `metadata.annotations`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
              minimum: {cel: cpu("1")}
            """,
    ),
    Code.written(
        "KP105",
        "key is missing",
        explanation="The kind requires a key that the mapping does not have.",
        why="There is no sensible default for it: any guess would decide something that only the author can decide.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Overcommit
            metadata: {name: team-batch}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              cpu: {cel: node.capacity.cpu * percent(60) - node.usage.highPriority.cpu}
            """,
        advice="Add the key. The message names it, the manual's page of the kind says what it means.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: Overcommit
            metadata: {name: team-batch}
            spec:
              match: {nodes: {matchLabels: {pool: colocated}}}
              resource: batch
              cpu: {cel: node.capacity.cpu * percent(60) - node.usage.highPriority.cpu}
            """,
    ),
    Code.written(
        "KP106",
        "wrong type",
        explanation="""
            A value has another type than its key takes: a text for a list, a number for a text, a mapping for a single
            value. YAML reads unquoted `true`, `10` and `1e3` as truth value and numbers, and every mapping key of a
            policy is a text.
            """,
        why="Turning one type into another silently is how `10` becomes ten bytes, or `no` a truth value.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {nodes: {matchLabels: {tier: 1}}}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
        advice="""
            Give the value the type the message asks for; quote a number or truth value that is meant as text. Where an
            expression is meant, write `{cel: ...}`.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              match: {nodes: {matchLabels: {tier: "1"}}}
              target: {cel: node.capacity.cpu * percent(65)}
            """,
    ),
    Code.written(
        "KP107",
        "value not permitted",
        explanation="""
            The type is right, the value is not: it is none of the permitted words, lies outside the permitted range,
            does not match the required pattern, or is no valid quantity (`500m`, `4`, `200Mi`, `65%`, `15m`).
            """,
        why="The kernel or the API server would refuse the value later, on some node, at a bad time.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
              minimum: 500mm
            """,
        advice="The message lists what is permitted. Write quantities as Kubernetes does, and durations as `15m` or `1h30m`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec:
              target: {cel: node.capacity.cpu * percent(65)}
              minimum: 500m
            """,
    ),
    Code.written(
        "KP108",
        "bad name",
        explanation="""
            A name is not formed as names are. `metadata.name` follows Kubernetes: lower-case letters, digits, `-` and
            `.`, beginning and ending with a letter or digit. Variables, parameters, constants and functions are
            identifiers: letters, digits and `_`, not beginning with a digit, and no word that CEL reserves.
            """,
        why="""
            Document names appear in Kubernetes objects, labels and metrics, and the others in expressions. A name that
            cannot stand there could not be referred to.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: Default Suppress}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
        advice="Choose another name; the message shows the permitted form.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default-suppress}
            spec: {target: {cel: node.capacity.cpu * percent(65)}}
            """,
    ),
    Code.written(
        "KP109",
        "same kind and name twice",
        explanation="""
            Two documents of one bundle have the same kind and name. A document may share its name with one of the pack
            that the bundle extends, and then overrides what it sets, but not with one beside it.
            """,
        why="""
            References, tests and `koordpolicy explain` name a document by kind and name. With two of them, which one
            is meant would depend on the order in which files are read.
            """,
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: night}
            spec:
              match: {nodes: {matchLabels: {pool: night}}}
              target: {cel: node.capacity.cpu * percent(80)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: night}
            spec:
              match: {nodes: {matchLabels: {pool: day}}}
              target: {cel: node.capacity.cpu * percent(50)}
            """,
        advice="""
            Rename one of the two, or merge them into one document. What differs from one environment to the next is a patch
            in an overlay of kustomize: `check` leaves the files alone that a `kustomization.yaml` names under `patches`, and says how
            the overlay is checked.
            """,
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: night}
            spec:
              match: {nodes: {matchLabels: {pool: night}}}
              target: {cel: node.capacity.cpu * percent(80)}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: day}
            spec:
              match: {nodes: {matchLabels: {pool: day}}}
              target: {cel: node.capacity.cpu * percent(50)}
            """,
    ),
    Code.written(
        "KP110",
        "bundle cannot be put together",
        explanation="""
            The root of a set of policies is one `PolicyBundle`, usually in `koordpolicy.yaml`. Here there are two, or
            it extends a pack that does not exist, or packs extend each other in a circle.
            """,
        why="The bundle says which packs lie below the files. Without it nobody knows what a file overrides.",
        example="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec: {extends: [koordinater]}
            """,
        advice="Keep one `PolicyBundle` at the root, and name packs as `koordpolicy` ships them: `koordinator`.",
        remedy="""
            apiVersion: koordpolicy.io/v1alpha1
            kind: PolicyBundle
            metadata: {name: shop}
            spec: {extends: [koordinator]}
            ---
            apiVersion: koordpolicy.io/v1alpha1
            kind: CPUSuppress
            metadata: {name: default}
            spec: {minimumCPUs: 3}
            """,
    ),
)
