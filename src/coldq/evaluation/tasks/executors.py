"""Who does the tasks: an executor of concurrent.futures, and the one loop that feeds it.

That is this process, processes of this machine, a Dask cluster, a Ray cluster, or any of a user's.
joblib's are not used: its processes outlive a parent that is killed, and its backends for clusters
lose the tasks of a killed worker (Ray) or have no window (Dask). Both clusters, asked directly,
send again what a lost worker leaves undone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any

from coldq.base.errors import InvalidInput, installed
from coldq.base.system import cores
from coldq.evaluation.tasks.processes import MAX_ATTEMPTS, TASKS_A_WORKER, Processes

LOCAL_ADDRESS = "local"
CONNECTION_TIMEOUT = 10.0  # seconds for a cluster to answer at all
MAX_PENDING_TASKS = 1_000  # tasks given at once to an executor that does not say how many it needs


def do_all(
    work: Callable[[Any], Any], tasks: Iterable[Any], executor: Executor
) -> Iterator[tuple[Any, Future[Any]]]:
    """Have an executor do all tasks: each with its future, as they come.

    Few are underway at a time, so that neither the memory here nor a scheduler's grows with their
    number.

    >>> from coldq.evaluation.tasks.executors import ThisProcess, do_all
    >>> [(task, future.result()) for task, future in do_all(abs, [-1, 2], ThisProcess())]
    [(-1, 1), (2, 2)]
    """
    width = getattr(executor, "width", MAX_PENDING_TASKS)
    waiting, underway = iter(tasks), dict[Future[Any], Any]()
    finished = SimpleQueue[Future[Any]]()
    while True:
        for task in islice(waiting, width - len(underway)):
            future = executor.submit(work, task)
            underway[future] = task
            future.add_done_callback(finished.put)
        if not underway:
            return
        future = finished.get()
        yield underway.pop(future), future


class ThisProcess(Executor):
    """An executor that does each task at once, where it is asked to."""

    width = 1

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done."""
        future = Future[Any]()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Cluster(Executor):
    """An executor that hands tasks to a cluster by a function of its own."""

    def __init__(self, send: Callable[..., Future[Any]], workers: int) -> None:
        self.send, self.width = send, TASKS_A_WORKER * max(workers, 1)

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The cluster's future."""
        return self.send(work, *args, **kwargs)


def _in_one_thread(work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The work, by a worker that we did not start; the clusters see to BLAS themselves."""
    os.environ["COLDQ_THREADS"] = "1"
    return work(*args, **kwargs)


def executor_of(
    workers: int | Executor | None = None, dask: str | None = None, ray: str | None = None
) -> AbstractContextManager[Executor]:
    """The executor that is asked for, for a block; none of them is this process itself.

    >>> from coldq.evaluation.tasks.executors import executor_of
    >>> with executor_of(workers=2) as executor:
    ...     executor.submit(abs, -3).result()
    3
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
        return _dask(dask, needed("distributed", "dask", "a Dask cluster"))
    if ray is not None:
        return _ray(ray, needed("ray", "ray", "a Ray cluster"))
    if isinstance(workers, Executor):
        return nullcontext(workers)
    return ThisProcess() if workers is None else Processes(workers)


@contextmanager
def _dask(address: str, distributed: Any) -> Iterator[Executor]:
    """The workers of a Dask cluster at an address, or "local": processes that Dask starts here."""
    given: dict[str, Any] = {"address": address}
    if address == LOCAL_ADDRESS:
        given = {"n_workers": cores(), "threads_per_worker": 1, "dashboard_address": None}
    else:
        require_answer(address, "Dask scheduler")
    try:
        client = distributed.Client(**given, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        send = partial(client.get_executor().submit, _in_one_thread)
        yield Cluster(send, sum(client.nthreads().values()))


@contextmanager
def _ray(address: str, ray: Any) -> Iterator[Executor]:
    """The nodes of a Ray cluster at an address."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of GPUs
    require_answer(address, "Ray cluster")
    try:
        ray.init(address, log_to_driver=False, configure_logging=True, logging_level="ERROR")
    except (ConnectionError, OSError, ValueError) as error:
        raise InvalidInput(f"no Ray cluster answers at {address}: {error}") from None
    try:
        remote = ray.remote(num_cpus=1, max_retries=MAX_ATTEMPTS - 1)(_in_one_thread)
        workers = int(ray.cluster_resources().get("CPU", 1))
        yield Cluster(lambda *args, **kwargs: remote.remote(*args, **kwargs).future(), workers)
    finally:
        ray.shutdown()


def require_answer(address: str, what: str) -> None:
    """Raise unless somebody listens at host:port: the clusters' own clients wait for minutes."""
    _, _, place = address.rpartition("//")
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidInput(f"the address of a {what} is host:port, but is {address!r:.200}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECTION_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"no {what} answers at {address}: {error}") from None


def needed(module: str, extra: str, what: str) -> Any:
    """A library that only some need; raise if it is not installed."""
    return installed(module, f"{what} needs {module}: install it with pip install 'coldq[{extra}]'")
