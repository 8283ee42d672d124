"""Names that documents give as values: plugins, bands and classes must be there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from koordpolicy.diagnostics import Severity, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.catalogue import NO_BAND
from koordpolicy.graph.meaning.constants import values_of
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import State

_ENTRY = re.compile(r"(?P<list>filters|scores)\[(?P<name>[^\]]*)\]\.(?P<rest>.+)\Z")


def names(state: State) -> None:
    """KP307 for plugins, bands and classes that do not exist, KP305 for parameters of plugins."""
    _plugins(state)
    _profiles(state)


def _plugins(state: State) -> None:
    for key, decision in state.decisions.items():
        entry = _ENTRY.match(key.field) if key.kind == "SchedulingProfile" else None
        if key.kind == "SchedulingProfile" and key.field == "preemption.plugin":
            preempting = {name for name, one in state.plugins.items() if one.preempts}
            for said in values_of(state, decision):
                if said.value not in preempting:
                    what = f"no plugin `{said.value}` makes room for pods"
                    report_unknown(state, said.span, what, str(said.value), preempting)
        if entry is None:
            continue
        able = {name for name, one in state.plugins.items() if getattr(one, entry["list"])}
        if entry["rest"] == "plugin":
            verb = "filters" if entry["list"] == "filters" else "scores"
            for said in values_of(state, decision):
                name = str(said.value)
                if name not in able:
                    what = (
                        f"no plugin `{name}` {verb}"
                        if name in state.plugins
                        else f"there is no plugin `{name}`"
                    )
                    report_unknown(state, said.span, what, name, able)
        elif entry["rest"].startswith("parameters."):
            _plugin_parameter(state, key, entry)


def _plugin_parameter(state: State, key: DecisionKey, entry: re.Match[str]) -> None:
    """A parameter that the entry's plugin does not have."""
    prefix = f"{entry['list']}[{entry['name']}]."
    chosen = state.decisions.get(replace(key, field=prefix + "plugin"))
    named = [said.value for said in values_of(state, chosen)] if chosen is not None else []
    known = [state.plugins[str(name)] for name in named if str(name) in state.plugins]
    parameter = entry["rest"].removeprefix("parameters.")
    if not known or any(parameter in one.parameters for one in known):
        return
    for draft in state.drafts:
        if draft.key == key:
            names = list(known[0].parameters)
            close = nearest(parameter, names)
            listed = ", ".join(f"`{name}`" for name in names)
            help = f"its parameters are {listed}" if names else "it has no parameters"
            state.found.add(
                "KP305",
                draft.unit.document.positions.key(draft.path),
                f"the plugin `{known[0].name}` has no parameter `{parameter}`",
                help=f"did you mean `{close}`?" if close else help,
            )


def _profiles(state: State) -> None:
    """What profiles put into pods: classes by value, bands by name, PriorityClasses that bands have."""
    if not state.classes.bands or not state.classes.qos:
        return
    values = qos_values(state)
    owned = [str(said.get("priorityClass.name", name)) for name, said in state.classes.bands.items()]
    schedulers = {unit.subject for unit in state.units if unit.kind.name == "SchedulingProfile"}
    tables: Mapping[str, tuple[str, Iterable[str]]] = MappingProxyType(
        {"qosClass": ("QoS class", values), "band": ("priority band", list(state.classes.bands))}
    )
    foreign: Mapping[str, tuple[str, Iterable[str]]] = MappingProxyType(
        {
            "priorityClassName": ("band has the PriorityClass", owned),
            "schedulerName": ("profile is for", schedulers),
        }
    )
    for key, decision in state.decisions.items():
        if key.kind != "ColocationProfile":
            continue
        for said in values_of(state, decision):
            name = said.value
            if not isinstance(name, str):
                continue
            if key.field in tables and name not in tables[key.field][1]:
                what, known = tables[key.field]
                report_unknown(state, said.span, f"there is no {what} `{name}`", name, known)
            elif key.field in foreign and name not in foreign[key.field][1]:
                _report_slip(state, said.span, name, *foreign[key.field])


def _report_slip(state: State, place: Span, name: str, phrase: str, known: Iterable[str]) -> None:
    """Names from outside are fine; one that nearly is a name of ours is most likely a slip."""
    close = nearest(name, known)
    if close:
        help = f"did you mean `{close}`?"
        state.found.add("KP307", place, f"no {phrase} `{name}`", help=help, severity=Severity.WARNING)


def qos_values(state: State) -> list[str]:
    """The values of the QoS label that some class has."""
    return [str(said.get("value", name)) for name, said in state.classes.qos.items()]


def report_unknown(state: State, place: Span, problem: str, name: str, known: Iterable[str]) -> None:
    """KP307 with the name that was probably meant, else with all there are."""
    names = [one for one in known if one]
    close = nearest(name, names)
    if close is None and name == NO_BAND:
        help = "no band is the empty text: `''`"
    elif close:
        help = f"did you mean `{close}`?"
    else:
        help = "there are " + ", ".join(f"`{one}`" for one in sorted(names))
    state.found.add("KP307", place, problem, help=help)
