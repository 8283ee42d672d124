"""QoS classes: every Kubernetes class leads to one of them, and the bands they name exist."""

from koordpolicy.diagnostics import Note, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.catalogue import NO_BAND, QOS_CLASS
from koordpolicy.graph.meaning.bands import layer_of, place
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import State

KUBERNETES_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


def classes(state: State) -> None:
    """KP404 for a Kubernetes class that two claim, KP405 for one that none does, KP307 for names."""
    owners: dict[str, str] = {}
    for subject, said in state.classes.qos.items():
        for kubernetes in said.get("kubernetes", ()):
            first = owners.setdefault(kubernetes, subject)
            if first != subject:
                other, later = sorted(
                    (first, subject), key=lambda one: layer_of(state, one, "kubernetes", QOS_CLASS)
                )
                state.found.add(
                    "KP404",
                    _element(state, later, "kubernetes", kubernetes),
                    f"`{other}` and `{later}` both claim the Kubernetes class `{kubernetes}`",
                    notes=(Note("the other claim", _element(state, other, "kubernetes", kubernetes)),),
                    help="each Kubernetes class leads to one QoS class",
                )
        for field in ("permittedBands", "defaultBand"):
            _check_bands(state, subject, field, said.get(field))
    missing = [name for name in KUBERNETES_CLASSES if name not in owners]
    if state.classes.qos and missing:
        # Whoever said last what classes are derived from has left them out.
        last = max(state.classes.qos, key=lambda one: layer_of(state, one, "kubernetes", QOS_CLASS))
        state.found.add(
            "KP405",
            place(state, last, "kubernetes", QOS_CLASS),
            "no QoS class is derived from " + " and ".join(f"`{name}`" for name in missing),
            help="add it to the `kubernetes` list of the class that such pods are to have",
        )


def _check_bands(state: State, subject: str, field: str, named: object) -> None:
    """Every name must be a band, or `none`."""
    names = named if isinstance(named, list | tuple) else [named] if named else []
    for name in names:
        if name in state.classes.bands or name == NO_BAND:
            continue
        known = [*state.classes.bands, NO_BAND]
        close = nearest(str(name), known)
        state.found.add(
            "KP307",
            _element(state, subject, field, name),
            f"`{subject}` names the band `{name}`, which does not exist",
            help=f"did you mean `{close}`?"
            if close
            else "the bands are " + ", ".join(f"`{n}`" for n in known),
        )


def _element(state: State, subject: str, field: str, name: object) -> Span:
    """Where a name stands in a list, else the place of the whole value."""
    whole = place(state, subject, field, QOS_CLASS)
    for draft in state.drafts:
        if draft.key == DecisionKey(QOS_CLASS, subject, field) and isinstance(draft.raw, list):
            positions = draft.unit.document.positions
            if name in draft.raw and positions.value(draft.path) == whole:
                return positions.value((*draft.path, draft.raw.index(name)))
    return whole
