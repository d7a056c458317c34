"""Descriptors: how many agents and connections there may be, with the files a process may open."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import NamedTuple

# Of the process itself, of agents at work that are one too many, and of what is accepted.
RESERVED_DESCRIPTORS = 96
MAX_CONNECTIONS = 1000
DESCRIPTORS_OF_AGENT = 3  # its file, the log of that, and its lock
log = logging.getLogger("coldq.serve")


class Shares(NamedTuple):
    """Resident agents and connections that a process has descriptors for."""

    resident: int
    connections: int


def shared(resident: int) -> Shares:
    """How many agents may be resident, as many as are wanted or can be, and how many connections.

    >>> from coldq.serve.descriptors import shared
    >>> shared(resident=5).resident
    5
    """
    limit = _raised(RESERVED_DESCRIPTORS + MAX_CONNECTIONS + DESCRIPTORS_OF_AGENT * resident)
    free = limit - RESERVED_DESCRIPTORS
    connections = max(
        1, min(MAX_CONNECTIONS, max(free // 3, free - DESCRIPTORS_OF_AGENT * resident))
    )
    possible = max(1, (free - connections) // DESCRIPTORS_OF_AGENT)
    if possible < resident:
        log.warning(
            "%s agents are resident at once at most, not %s: this process may open %s files "
            "(ulimit -n)", possible, resident, limit,
        )  # fmt: skip
    return Shares(min(resident, possible), connections)


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
