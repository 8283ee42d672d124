"""Jobs on a Dask cluster that is there: its scheduler by the address, its workers by what they have installed.

A worker needs koordpolicy as it is here, and no file: policies and what flags name go with each job. Dask gives the job of a worker that
died to another one, until so many have died in it as the scheduler allows (`distributed.scheduler.allowed-failures`, 3).
"""

import logging
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.engines import Engine, EngineLostError
from koordpolicy.cli.tuning.evaluation import Given, Job, Report, evaluate
from koordpolicy.cli.tuning.same_program import differences, versions

CONNECT_WITHIN: Final = 10.0
"""Seconds within which a scheduler answers."""
WORKERS_WITHIN: Final = 60.0
"""Seconds within which there is a worker, at the beginning and after the last one has gone."""
_EACH: Final = 1.0
_MOST_NAMED: Final = 3
_one_at_a_time = threading.Lock()
"""Simulations of one process: they are no faster beside each other, and the settings of its garbage collector are for one."""


def evaluate_on_worker(job: Job, given: Given, program: dict[str, str]) -> Report:
    """The report of a job on a worker. Raises `CannotRunError`, too, where it is not the program that asks."""
    different = differences(program, versions())
    if different:
        raise CannotRunError(f"a worker that has come has {', '.join(different)}")
    with _one_at_a_time:
        return evaluate(job, given)


def _versions() -> dict[str, str]:
    return dict(versions())


class DaskCluster(Engine):
    """A cluster by the address of its scheduler. Raises `CannotRunError` where it cannot be had, or simulates otherwise than here.

    `patience` is how long there may be no worker, in seconds.
    """

    def __init__(self, address: str, given: Given, patience: float = WORKERS_WITHIN) -> None:
        self._address, self._given, self._patience = address, given, patience
        self._without_workers: float | None = None
        self._client = _client(address)
        try:
            self.trials = self._demand_workers()
            self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close(timeout=_EACH)
            raise

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future of what a worker does; `evaluate` of a job takes what is given along."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is large: it is what there is
            if fn is evaluate:
                fn, args = evaluate_on_worker, (*args, self._given, _versions())
            future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    def outcome(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(_EACH)
            except CannotRunError:
                raise
            except CancelledError:
                raise self._lost() from None
            except TimeoutError as error:
                if future.done():
                    raise _failed(error) from None
                self.demand_sound()
            except Exception as error:  # noqa: BLE001 - whatever went wrong there, it is told
                raise _failed(error) from None

    def demand_sound(self) -> None:
        """Raise `EngineLostError` where the scheduler is gone, or has had no workers for too long."""
        if self._client.status in ("closed", "closing"):
            raise self._lost()
        if self._client.status != "running" or self._workers():
            self._without_workers = None
            return
        now = time.monotonic()
        if self._without_workers is None:
            self._without_workers = now
        if now - self._without_workers > self._patience:
            raise EngineLostError(
                f"the Dask scheduler at {self._address} has had no workers for {self._patience:.0f} s"
            )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take back what was submitted, and leave; a worker ends the simulation that it is in the midst of."""
        del wait, cancel_futures
        try:
            self._executor.shutdown(wait=False)
        except Exception as error:  # noqa: BLE001 - who is gone has nothing to take back
            logging.getLogger(__name__).debug("%s: %s", self._address, error)
        self._client.close(timeout=_EACH)

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _lost(self) -> EngineLostError:
        return EngineLostError(f"the connection to the Dask scheduler at {self._address} was lost")

    def _demand_workers(self) -> int:
        """How many workers there are. Raises `CannotRunError` without any, and where one has another program."""
        try:
            self._client.wait_for_workers(1, timeout=self._patience)
        except TimeoutError:
            raise CannotRunError(
                f"the Dask scheduler at {self._address} has no workers; start some: `dask worker {self._address} --nthreads 1`"
            ) from None
        try:
            told: dict[str, Any] = self._client.run(
                _versions, on_error="return", callback_timeout=self._patience
            )
        except TimeoutError:
            raise CannotRunError(
                f"the workers of the Dask scheduler at {self._address} did not all answer within {self._patience:.0f} s"
            ) from None
        except ImportError as error:
            raise CannotRunError(
                _other_program(self._address, [f"has no koordpolicy as here ({error})"])
            ) from None
        except OSError as error:
            raise CannotRunError(
                f"the workers of the Dask scheduler at {self._address} do not answer: {error}"
            ) from None
        mine = _versions()
        wrong = []
        for worker, theirs in sorted(told.items()):
            if isinstance(theirs, BaseException):
                wrong.append(f"{worker} has no koordpolicy as here ({theirs})")
            elif different := differences(mine, theirs):
                wrong.append(f"{worker} has {', '.join(different)}")
        if wrong:
            raise CannotRunError(_other_program(self._address, wrong))
        return max(1, len(told))


def _other_program(address: str, wrong: list[str]) -> str:
    """In words, the first of them by name."""
    more = len(wrong) - _MOST_NAMED
    listed = "; ".join(wrong[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
    return (
        f"workers of the Dask scheduler at {address} would simulate otherwise than this process: {listed}."
        " Install the same versions there as here"
    )


def _failed(error: BaseException) -> CannotRunError:
    if type(error).__name__ == "KilledWorker":
        deaths = getattr(error, "allowed_failures", 0) + 1
        last = getattr(getattr(error, "last_worker", None), "address", "")
        return CannotRunError(
            f"{deaths} workers died in it, the last one at {last}, which most often is for want of memory; its log may say more"
        )
    return CannotRunError(f"on a worker: {type(error).__name__}: {error}")


def _client(address: str) -> Any:
    """A client of the scheduler. Raises `CannotRunError` where it cannot be had."""
    try:
        import distributed  # noqa: PLC0415  # an extra, and slow to import
    except ImportError:
        raise CannotRunError("--dask needs Dask: `pip install 'koordpolicy[dask]'`") from None
    client: Any = distributed.Client
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # what matters is told by us
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions are compared below, those that decide about a report
        try:
            return client(address, timeout=CONNECT_WITHIN, set_as_default=False)
        except TypeError:
            raise CannotRunError(
                f"no certificates for {address}: name them by DASK_DISTRIBUTED__COMM__TLS__CA_FILE,"
                " DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
            ) from None
        except (OSError, ValueError) as error:
            raise CannotRunError(f"no Dask scheduler answers at {address}: {error}") from None
