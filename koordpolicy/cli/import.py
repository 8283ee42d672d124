"""`koordpolicy import`: policies that decide what Koordinator's configuration makes it decide."""  # noqa: N999  # it is called as the command

import argparse
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from koordpolicy.cli.bundle import OWN, find_pack, graph_of, graph_of_files
from koordpolicy.cli.command import FINDINGS, LEFT_OUT, OK, CannotRunError
from koordpolicy.cli.exchange import read_objects, table_data, table_text
from koordpolicy.cli.live_configuration import cluster_objects
from koordpolicy.cli.output_files import put_below
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.exchange.documents import API_VERSION, SOURCE, Imported
from koordpolicy.graph.exchange.importing import import_objects
from koordpolicy.graph.exchange.refusing import files_of, without_refused
from koordpolicy.language.documents.writing import yaml_text

_ROOT: Final = "koordpolicy.yaml"
_NO_NAME: Final = re.compile(r"[^a-z0-9.-]+")
"""What no name of a file has here: sources are named by objects, which may come from anybody."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Import, write, and tell."""
    if bool(arguments.files) == arguments.from_cluster:
        raise CannotRunError("name files with objects, or `--from-cluster`: one of the two")
    objects = (
        cluster_objects(arguments.kubeconfig, arguments.context, arguments.namespace, terminal)
        if arguments.from_cluster
        else read_objects(arguments.files)
    )
    imported = import_objects(objects, graph_of([], arguments.compiler))
    compiler = arguments.compiler or Compiler(find_pack)
    imported = without_refused(imported, lambda documents: compiler.compile(Layer(OWN, files_of(documents))))
    if not imported.documents and not imported.table:
        if any(str(one.get("apiVersion", "")).startswith("descheduler/") for one in objects):
            raise CannotRunError(
                "a DeschedulerPolicy is not imported: its strategies are in the pack under their names, and"
                " examples/09-rebalance/README.md says which parameters take their arguments"
            )
        raise CannotRunError(f"there is nothing of Koordinator's configuration in {_place(arguments)}")
    if arguments.output == "json":
        terminal.print(json_text(table_data(imported.table), indent=2))
    else:
        terminal.print(table_text(imported.table))
    if arguments.write is not None:
        _write(arguments.write, imported, terminal)
    try:
        if imported.documents:
            graph_of_files(files_of(imported.documents), arguments.compiler)
    except CannotRunError as error:
        terminal.say(f"the policies do not compile as they are; mend them by hand:\n{error}")
        return FINDINGS
    return LEFT_OUT if any(row.reason and not row.keeps for row in imported.table) else OK


def _place(arguments: argparse.Namespace) -> str:
    return f"namespace `{arguments.namespace}`" if arguments.from_cluster else "these files"


def _write(directory: Path, imported: Imported, terminal: Terminal) -> None:
    """A file for each source; the root of a bundle where there is none yet."""
    by_source: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in imported.documents:
        source = _NO_NAME.sub("-", one["metadata"]["annotations"][SOURCE].split(".")[0].lower())
        by_source[source].append(one)
    root = {
        "apiVersion": API_VERSION,
        "kind": "PolicyBundle",
        "metadata": {"name": "imported"},
        "spec": {"extends": ["koordinator"]},
    }
    texts = {f"imported/{source}.yaml": yaml_text(documents) for source, documents in by_source.items()}
    if not (directory / _ROOT).exists():
        texts[_ROOT] = yaml_text([root])
    for path, text in texts.items():
        terminal.say(f"wrote {put_below(directory, path, text)}")
