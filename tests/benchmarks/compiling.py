"""Compiling: the built-in pack, and 1,000 generated files with 5,000 expressions, cold and after one change."""

import time
from collections.abc import Iterator, Mapping

from koordpolicy.cli.bundle import find_pack
from koordpolicy.graph import Compilation, Compiler, Layer
from tests.benchmarks.measure import Row

FILES = 1_000
BUNDLE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: generated}
spec: {extends: []}
"""
DOCUMENT = """\
# Pool {number} of the generated fleet.
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {{name: pool-{number}}}
spec:
  match:
    nodes: {{matchLabels: {{pool: p{number}}}}}
    condition: node.capacity.cpu >= cpu("{least}")
  variables:
    - {{name: reserve, expression: node.capacity.cpu * percent({share})}}
    - {{name: protected, expression: node.usage.prod.cpu + node.usage.system.cpu + millicores({number})}}
  target:
    cel: max(variables.reserve - variables.protected, millicores({floor}))
  minimum:
    cel: min(node.allocatable.cpu, cpu("2")) + millicores({number})
"""


def run() -> Iterator[Row]:
    """Seconds for each compilation; the best of three for the pack, the only one for the large ones."""
    pack = find_pack("koordinator")
    assert pack is not None
    yield _row("built-in pack, cold", pack.files, min(_timed(Compiler(), pack)[0] for _ in range(3)))
    compiler = Compiler()
    files = dict(generated())
    cold, compilation = _timed(compiler, Layer("generated", files))
    assert compilation.graph is not None, list(compilation.found)[:3]
    yield _row(f"{FILES:,} files, cold", files, cold)
    files["500.yaml"] = files["500.yaml"].replace("percent(", "percent(1 + ")
    yield _row("one of them changed", files, _timed(compiler, Layer("generated", files))[0])
    yield _row("nothing changed", files, _timed(compiler, Layer("generated", files))[0])


def generated() -> Iterator[tuple[str, str]]:
    """Paths and texts of a bundle of `FILES` documents on one decision."""
    yield "koordpolicy.yaml", BUNDLE
    for number in range(FILES):
        text = DOCUMENT.format(
            number=number, least=number % 7 + 1, share=number % 60 + 20, floor=number % 900
        )
        yield f"{number}.yaml", text


def _timed(compiler: Compiler, layer: Layer) -> tuple[float, Compilation]:
    begin = time.perf_counter()
    compilation = compiler.compile(layer)
    return time.perf_counter() - begin, compilation


def _row(what: str, files: Mapping[str, str], seconds: float) -> Row:
    expressions = sum(map(_expressions, files.values()))
    return {"what": what, "files": len(files), "expressions": expressions, "seconds": seconds}


def _expressions(text: str) -> int:
    return text.count("cel:") + text.count("expression:") + text.count("condition:")
