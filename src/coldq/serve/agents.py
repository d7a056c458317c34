"""Many agents in one process, by name; those that nobody asks for sleep on disk."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from coldq.agent import Agent
from coldq.agent.store import Store
from coldq.errors import InvalidInput, NotWritten
from coldq.serve.requested import learner_of

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)  # of a file too, on any system
ROWS = 10_000  # constraints
SUFFIX = ".db"
log = logging.getLogger("coldq.serve")


class NoSuchAgent(InvalidInput):
    """There is no agent of this name."""


class OtherAgent(InvalidInput):
    """There is another agent of this name."""


class Agents:
    """The agents of a folder, of which at most `awake` are open, or, without one, of this process.

    >>> from coldq.serve.agents import Agents
    >>> agents = Agents(None)
    >>> box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": 2}
    >>> agents.create("pump", {"type": "OGD", "domain": box, "eta": 0.1}, 0, {})
    True
    >>> with agents.get("pump") as agent:
    ...     agent.decide().round
    1
    """

    def __init__(self, folder: Path | None, awake: int = 1000, most: int = 10_000) -> None:
        self.folder, self.awake, self.most = folder, awake, most
        self._lock = Lock()
        self._open: OrderedDict[str, Agent] = OrderedDict()
        self._busy: dict[str, int] = {}  # how many use it now
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NotWritten(f"{folder} cannot be made: {error.strerror}") from None

    def names(self) -> list[str]:
        """All of them, asleep or awake."""
        with self._lock:
            found = set(self._open)
        if self.folder is not None:
            found |= {path.stem for path in self.folder.glob(f"*{SUFFIX}")}
        return sorted(name for name in found if NAME.fullmatch(name))

    def awake_now(self) -> dict[str, Agent]:
        """Those that are open."""
        with self._lock:
            return dict(self._open)

    def create(
        self, name: str, learner: Mapping[str, Any], n_constraints: int, options: Mapping[str, Any]
    ) -> bool:
        """A new agent, or False if there is the same one already."""
        path = self._path(name)
        if n_constraints > ROWS:
            raise InvalidInput(f"n_constraints may be at most {ROWS}, but is {n_constraints}")
        made = learner_of(learner)
        with self._lock:
            old = self._open.get(name)
            if old is None and path is not None and path.is_file() and not _is_new(path):
                old = self._wake(name, path)
            if old is not None:
                self._require_same(name, old, made, n_constraints, options)
                return False
            if len(self._open) >= self.most and self.folder is None:
                raise InvalidInput(f"there are {self.most} agents already, the most there may be")
            self._open[name] = Agent(made, n_constraints, path=path, **options)
            self._put_to_sleep()
            return True

    @contextmanager
    def get(self, name: str) -> Iterator[Agent]:
        """An agent to use, awake as long as that takes."""
        path = self._path(name)
        with self._lock:
            agent = self._open.get(name)
            if agent is None:
                if path is None or not path.is_file():
                    raise NoSuchAgent(f"there is no agent {name!r}")
                agent = self._wake(name, path)
            self._open.move_to_end(name)
            self._busy[name] = self._busy.get(name, 0) + 1
        try:
            yield agent
        finally:
            with self._lock:
                self._busy[name] -= 1
                if not self._busy[name]:
                    del self._busy[name]
                if len(self._open) > self.awake:
                    self._put_to_sleep()

    def close(self) -> None:
        """Put all to sleep."""
        with self._lock:
            for name, agent in self._open.items():
                _close(name, agent)
            if self.folder is not None:
                self._open.clear()

    def _path(self, name: str) -> Path | None:
        if not NAME.fullmatch(name):
            raise InvalidInput(
                "a name has 1 to 64 of a-z, 0-9, - and _, and begins with a letter or digit"
            )
        return None if self.folder is None else self.folder / f"{name}{SUFFIX}"

    def _wake(self, name: str, path: Path) -> Agent:
        agent = self._open[name] = Agent.open(path)
        self._put_to_sleep(but=name)
        return agent

    def _put_to_sleep(self, but: str | None = None) -> None:
        """Close the agents that nobody has asked for longest, if they are too many."""
        if self.folder is None:
            return
        for name in list(self._open):
            if len(self._open) <= self.awake:
                return
            if name not in self._busy and name != but:
                _close(name, self._open.pop(name))

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
