"""Many agents in one process, by name; those that nobody asks for are evicted to disk."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from coldq.agent import Agent
from coldq.agent.store import Committed, Store
from coldq.base.errors import InvalidInput, NotWritten
from coldq.serve.requested import learner_of

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)  # of a file too, on any system
DEVICE_PATTERN = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.ASCII)  # on some systems
MAX_CONSTRAINTS = 10_000
FILE_SUFFIX = ".db"
WORKER_THREADS = 16  # most of them wait for the disk; `descriptors` has room for their agents
QUICK_UPDATE_SECONDS = 0.001
log = logging.getLogger("coldq.serve")


class NoSuchAgent(InvalidInput):
    """There is no agent of this name."""


class OtherAgent(InvalidInput):
    """There is another agent of this name."""


@dataclass
class _Use:
    """Users of an agent: their count, and a lock for the one that opens or closes its file."""

    lock: Any = field(default_factory=Lock)
    count: int = 0


class Agents:
    """Agents by name: of a folder, of which at most `resident` are open, or of this process.

    >>> from coldq.serve.agents import Agents
    >>> agents = Agents(None)
    >>> box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": 2}
    >>> agents.create("pump", {"type": "OGD", "domain": box, "eta": 0.1}, 0, {})
    True
    >>> with agents.get("pump") as agent:
    ...     agent.decide().round
    1
    """

    def __init__(
        self,
        folder: Path | None,
        resident: int = 1000,
        most: int = 10_000,
        committed: Committed | None = None,
    ) -> None:
        self.folder, self.resident, self.most = folder, resident, most
        self.committed = committed  # is told of every transaction
        self._lock = Lock()  # of what follows, never while a file is opened or closed
        self._open: OrderedDict[str, Agent] = OrderedDict()
        self._uses: dict[str, _Use] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NotWritten(f"{folder} cannot be made: {error.strerror}") from None

    def names(self) -> list[str]:
        """Names of all agents, resident or evicted."""
        if self.folder is None:
            return sorted(self.resident_agents())
        found = (path.stem for path in self.folder.glob(f"*{FILE_SUFFIX}"))
        return sorted(name for name in found if NAME_PATTERN.fullmatch(name))

    def resident_agents(self) -> dict[str, Agent]:
        """Resident agents by name."""
        with self._lock:
            return dict(self._open)

    def create(
        self, name: str, learner: Mapping[str, Any], n_constraints: int, options: Mapping[str, Any]
    ) -> bool:
        """Create an agent, or return False if there is the same one already."""
        path = self._path(name)
        if n_constraints > MAX_CONSTRAINTS:
            raise InvalidInput(
                f"n_constraints may be at most {MAX_CONSTRAINTS}, but is {n_constraints}"
            )
        made = learner_of(learner, n_constraints)
        with self._used(name) as use:
            with use.lock:
                old = self._found(name)
                if old is None and path is not None and path.is_file() and not _is_new(path):
                    old = self._register(name, Agent.open(path))
                if old is not None:
                    self._require_same(name, old, made, n_constraints, options)
                    return False
                if len(self._open) >= self.most and self.folder is None:
                    raise InvalidInput(
                        f"there are {self.most} agents already, the most there may be"
                    )
                self._register(name, Agent(made, n_constraints, path=path, **options))
            return True

    @contextmanager
    def get(self, name: str) -> Iterator[Agent]:
        """An agent to use, which stays resident as long as that takes."""
        path = self._path(name)
        with self._used(name) as use:
            with use.lock:
                agent = self._found(name)
                if agent is None:
                    if path is None or not path.is_file():
                        raise NoSuchAgent(f"there is no agent {name!r}")
                    agent = self._register(name, Agent.open(path))
            yield agent

    def is_quick(self, name: str) -> bool:
        """Whether an agent, if there is one, answers within a millisecond: its last update did."""
        agent = self._open.get(name)
        return agent is None or (agent._seconds < QUICK_UPDATE_SECONDS and not agent._held)

    def close(self) -> None:
        """Close all agents."""
        with self._lock:
            agents = dict(self._open)
            if self.folder is not None:
                self._open.clear()
        with ThreadPoolExecutor(WORKER_THREADS) as pool:  # each waits for the disk several times
            list(pool.map(_close, agents, agents.values()))

    def _path(self, name: str) -> Path | None:
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidInput(
                "a name has 1 to 64 of a-z, 0-9, - and _, and begins with a letter or digit"
            )
        if DEVICE_PATTERN.fullmatch(name):
            raise InvalidInput(f"{name!r} is the name of a device on some systems: take another")
        return None if self.folder is None else self.folder / f"{name}{FILE_SUFFIX}"

    @contextmanager
    def _used(self, name: str) -> Iterator[_Use]:
        """A block in which an agent is used, and stays resident; afterwards it may be evicted."""
        with self._lock:
            use = self._uses.setdefault(name, _Use())
            use.count += 1
            if name in self._open:
                self._open.move_to_end(name)
        try:
            yield use
        finally:
            self._leave(name, use)
            self._evict_idle()

    def _leave(self, name: str, use: _Use) -> None:
        with self._lock:
            use.count -= 1
            if not use.count:
                del self._uses[name]

    def _found(self, name: str) -> Agent | None:
        """A resident agent; one that is behind its file, or has lost it, is given up."""
        agent = self._open.get(name)
        if agent is None or not agent._lost():
            return agent
        with self._lock:
            self._open.pop(name, None)
        _close(name, agent)
        return None

    def _register(self, name: str, agent: Agent) -> Agent:
        if agent._store is not None:
            agent._store.committed = self.committed
        with self._lock:
            self._open[name] = agent
        self._evict_idle()
        return agent

    def _evict_idle(self) -> None:
        """Evict the agents that nobody has asked for longest, if they are too many."""
        while self.folder is not None:
            with self._lock:
                if len(self._open) <= self.resident:
                    return
                idle = next((name for name in self._open if name not in self._uses), None)
                if idle is None:
                    return
                agent = self._open.pop(idle)
                use = self._uses[idle] = _Use(count=1)
                use.lock.acquire()  # whoever asks for it now waits until its file is free
            _close(idle, agent)
            use.lock.release()
            self._leave(idle, use)

    @staticmethod
    def _require_same(
        name: str, old: Agent, made: Any, n_constraints: int, options: Mapping[str, Any]
    ) -> None:
        mine = {"n_constraints": n_constraints, **options}
        other = [word for word, value in mine.items() if getattr(old, word) != value]
        if old.learner != made:
            other.insert(0, "learner")
        if other:
            raise OtherAgent(f"there is an agent {name!r} already, with another {other[0]}")


def _close(name: str, agent: Agent) -> None:
    """Close an agent; who asked for another one need not know that it failed."""
    try:
        agent.close()
    except Exception as error:  # what was acknowledged is on disk all the same
        log.error("agent %s could not be closed in order: %s", name, error)


def _is_new(path: Path) -> bool:
    """Whether no agent was ever in a file, as when the disk was full when one was to begin."""
    store = Store(path)
    try:
        return store.is_new
    finally:
        store.close()
