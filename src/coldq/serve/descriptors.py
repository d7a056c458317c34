"""Descriptors: how many agents and connections there may be, with the files a process may open."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import NamedTuple

OWN = 96  # of the process itself, of agents at work that are one too many, and of what is accepted
CONNECTIONS = 1000  # at most
EACH = 3  # of an agent that is awake: its file, the log of that, and its lock
log = logging.getLogger("coldq.serve")


class Shares(NamedTuple):
    """Who gets how much of them."""

    awake: int
    connections: int


def shared(awake: int) -> Shares:
    """So many agents awake, or as many as can be, and the connections beside them.

    >>> from coldq.serve.descriptors import shared
    >>> shared(awake=5).awake
    5
    """
    limit = _raised(OWN + CONNECTIONS + EACH * awake)
    free = limit - OWN
    connections = max(1, min(CONNECTIONS, max(free // 3, free - EACH * awake)))
    possible = max(1, (free - connections) // EACH)
    if possible < awake:
        log.warning(
            "%s agents are awake at once at most, not %s: this process may open %s files (ulimit "
            "-n)", possible, awake, limit,
        )  # fmt: skip
    return Shares(min(awake, possible), connections)


def _raised(wanted: int) -> int:
    """How many files this process may open; as many as wanted, where the system lets it."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return wanted
    kind, unlimited = resource.RLIMIT_NOFILE, resource.RLIM_INFINITY
    soft, hard = resource.getrlimit(kind)
    if soft != unlimited and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a lower limit than they say
            resource.setrlimit(kind, (wanted if hard == unlimited else min(wanted, hard), hard))
    soft, _ = resource.getrlimit(kind)
    return wanted if soft == unlimited else min(soft, wanted)
