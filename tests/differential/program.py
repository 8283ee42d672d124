"""A referee that is a program of its own: batches of questions go in, batches of answers come out, a line of JSON each."""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koordpolicy.language.cel.types import Type
from tests.differential.outcomes import Bound, Error, Refused
from tests.differential.wire import decoded, type_form

PATIENCE = 600.0
"""Seconds for the answers to one batch, however busy the machine is."""


@dataclass(frozen=True, slots=True)
class Question:
    """An expression, the environment it is read in, and its rows as JSON texts."""

    environment: str
    text: str
    rows: Sequence[str]


class Program:
    """The running program. `send` and `receive` alternate. Raises OSError when it ends or does not answer."""

    def __init__(self, path: Path, environments: Mapping[str, Mapping[str, Type]]) -> None:
        self._environments: Any = {
            name: {variable: type_form(kind) for variable, kind in variables.items()}
            for name, variables in environments.items()
        }
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def send(self, questions: Sequence[Question]) -> None:
        """Hand in a batch; the program works on it while the caller does other things."""
        asked = ",".join(
            f'{{"environment":{json.dumps(one.environment)},"text":{json.dumps(one.text)},"rows":[{",".join(one.rows)}]}}'
            for one in questions
        )
        line = f'{{"environments":{json.dumps(self._environments)},"questions":[{asked}]}}\n'
        self._environments = {}
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()

    def receive(self) -> list[Refused | list[Any]]:
        """The answers to the batch: why it was refused, or the value of each row, `Error` or `Bound`."""
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            self._process.wait()
            assert self._process.stderr is not None
            raise OSError(
                f"the referee has ended: {self._process.stderr.read(2000).decode(errors='replace')}"
            )
        return [_answer(one) for one in json.loads(line)]

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


def _answer(one: Mapping[str, Any]) -> Refused | list[Any]:
    if "refused" in one:
        return Refused(one["refused"])
    return [_outcome(row) for row in one.get("rows", ())]


def _outcome(row: Mapping[str, Any]) -> Any:
    if "error" in row:
        return Error(row["error"])
    if "limit" in row:
        return Bound
    return decoded(row.get("value"))
