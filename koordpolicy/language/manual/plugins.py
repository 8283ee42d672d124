"""The page of plugins: what filters, scores and preemption of a profile may name, with their parameters."""

from collections.abc import Iterable

from koordpolicy.language.kinds.plugins import PLUGINS, PluginName
from koordpolicy.language.manual.markdown import code, table

_INTRODUCTION = """# Filters and scores

A filter or score of a [SchedulingProfile](kinds.md#schedulingprofile) is an expression of your own (`require`, `value`), or
names one of these algorithms with `plugin`, as preemption does. Parameters are decisions: literals or expressions.

```yaml
filters:
  - name: NodeResourcesFit
    plugin: NodeResourcesFit
    parameters: {ignoredResourceGroups: [example.com]}
scores:
  - name: Fit
    plugin: NodeResourcesFit
    weight: 1
    parameters: {strategy: MostAllocated, weights: {cpu: 1, memory: 1}}
```
"""


def plugins_page() -> str:
    """The page, ending with a line break."""
    known = PLUGINS.values()
    return "\n".join(
        [
            _INTRODUCTION,
            _part("Filters", (one for one in known if one.filters)),
            _part("Scores", (one for one in known if one.scores)),
            _part("Preemption", (one for one in known if one.preempts)),
            "## Parameters\n",
            *(_parameters(one) for one in known if one.parameters),
        ]
    )


def _part(title: str, plugins: Iterable[PluginName]) -> str:
    rows = ((code(one.name), one.meaning, ", ".join(map(code, one.parameters))) for one in plugins)
    return f"## {title}\n\n" + table(("plugin", "meaning", "parameters"), rows)


def _parameters(plugin: PluginName) -> str:
    rows = ((code(name), meaning) for name, meaning in plugin.parameters.items())
    return f"### {plugin.name}\n\n" + table(("parameter", "meaning"), rows)
