"""Who does the tasks: this process, processes of this machine, a Dask cluster, a Ray cluster.

An engine is called with the work, the tasks, and `done`, which hears in this thread of each task
and of its answer, in whatever order they come. A task whose worker is lost is sent again, `TRIES`
times in all; then its answer is a :class:`~coldq.WorkerLost`. Few tasks are underway at a time, so
that neither the memory here nor a scheduler's grows with their number.

joblib's pool of processes is not used: where its parent is killed outright its processes stay, and
a lost one ends the others' work. Nor are its backends for clusters: Ray's loses the tasks of a
killed worker, and Dask's has no window. Both clusters send again what a lost worker leaves undone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from coldq._system import cores
from coldq._values import whole_number
from coldq.errors import InvalidInput, WorkerLost, installed
from coldq.tasks.workers import share

TRIES = 3
AHEAD = 3  # tasks a worker has underway or waiting: the next one is there when one is done
LOCAL = "local"
PATIENCE = 10.0  # seconds for a cluster to answer at all

Work = Callable[[Any], Any]
Done = Callable[[Any, Any], None]
Engine = Callable[[Work, Iterable[Any], Done], None]


def here(work: Work, tasks: Iterable[Any], done: Done) -> None:
    """One task after another, in this process.

    >>> from coldq.tasks.engines import here
    >>> here(abs, [-1, 2], print)
    -1 1
    2 2
    """
    for task in tasks:
        done(task, work(task))


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, one thread each; they end when this one does, however it does."""

    count: int

    def __post_init__(self) -> None:
        whole_number("workers", self.count, 1)

    def __call__(self, work: Work, tasks: Iterable[Any], done: Done) -> None:
        share(work, tasks, self.count, done, tries=TRIES, lost=done)


@dataclass(frozen=True)
class Dask:
    """The workers of a Dask cluster at an address, or "local": processes that Dask starts here."""

    address: str

    def __call__(self, work: Work, tasks: Iterable[Any], done: Done) -> None:
        distributed = needed("distributed", "dask", "a Dask cluster")
        given: dict[str, Any] = {"address": self.address}
        if self.address == LOCAL:
            given = {"n_workers": cores(), "threads_per_worker": 1, "dashboard_address": None}
        else:
            require_answer(self.address, "Dask scheduler")
        try:
            client = distributed.Client(**given, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InvalidInput(f"no Dask scheduler answers at {self.address}: {error}") from None
        with client:
            waiting, underway = iter(tasks), {}
            threads = sum(client.nthreads().values())
            finished = distributed.as_completed(loop=client.loop)

            def send(count: int) -> None:
                for task in islice(waiting, count):
                    future = client.submit(in_one_thread, work, task, pure=False, retries=TRIES - 1)
                    underway[future.key] = task
                    finished.add(future)

            send(max(AHEAD * threads, AHEAD))
            for future in finished:
                task = underway.pop(future.key)
                try:
                    answer = future.result()
                except distributed.KilledWorker as error:
                    answer = WorkerLost(str(error))
                done(task, answer)
                future.release()
                send(1)


@dataclass(frozen=True)
class Ray:
    """The nodes of a Ray cluster at an address."""

    address: str

    def __call__(self, work: Work, tasks: Iterable[Any], done: Done) -> None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of GPUs
        require_answer(self.address, "Ray cluster")
        ray = needed("ray", "ray", "a Ray cluster")
        try:
            ray.init(
                self.address, log_to_driver=False, configure_logging=True, logging_level="ERROR"
            )
        except (ConnectionError, OSError, ValueError) as error:
            raise InvalidInput(f"no Ray cluster answers at {self.address}: {error}") from None
        try:
            remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(in_one_thread)
            shared, waiting, underway = ray.put(work), iter(tasks), {}
            size = int(ray.cluster_resources().get("CPU", 1))

            def send(count: int) -> None:
                for task in islice(waiting, count):
                    underway[remote.remote(shared, task)] = task

            send(AHEAD * size)
            while underway:
                (first,), _ = ray.wait(list(underway), num_returns=1)
                task = underway.pop(first)
                try:
                    answer = ray.get(first)
                except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
                    answer = WorkerLost(str(error))
                done(task, answer)
                send(1)
        finally:
            ray.shutdown()


def in_one_thread(work: Work, task: Any) -> Any:
    """The work, by a worker that we did not start; the clusters see to BLAS themselves."""
    os.environ["COLDQ_THREADS"] = "1"
    return work(task)


def engine_of(
    workers: int | None = None, dask: str | None = None, ray: str | None = None
) -> Engine:
    """The engine that is asked for; none of them is this process itself.

    >>> from coldq.tasks.engines import engine_of
    >>> engine_of(workers=2)
    Processes(count=2)
    """
    asked = {"workers": workers, "dask": dask, "ray": ray}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(f"{' and '.join(given)} contradict each other: give one of them")
    for name in ("dask", "ray"):
        address = asked[name]
        if address is not None and (not isinstance(address, str) or not address):
            raise InvalidInput(f"{name} must be an address, but is {address!r:.200}")
    if dask is not None:
        needed("distributed", "dask", "a Dask cluster")
        return Dask(dask)
    if ray is not None:
        needed("ray", "ray", "a Ray cluster")
        return Ray(ray)
    return here if workers is None else Processes(workers)


def require_answer(address: str, what: str) -> None:
    """Raise unless somebody listens at host:port: the clusters' own clients wait for minutes."""
    _, _, place = address.rpartition("//")
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidInput(f"the address of a {what} is host:port, but is {address!r:.200}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"no {what} answers at {address}: {error}") from None


def needed(module: str, extra: str, what: str) -> Any:
    """A library that only some need; raise if it is not installed."""
    return installed(module, f"{what} needs {module}: install it with pip install 'coldq[{extra}]'")
