"""Descriptors: how many connections there may be, with as many files open as the system lets."""

from __future__ import annotations

OWN = 96  # of the process itself, of what is open for a moment, and of what is being accepted
MOST = 1000  # connections


def connections() -> int:
    """How many connections may be open at once.

    >>> from coldq.serve.descriptors import connections
    >>> 1 <= connections() <= 1000
    True
    """
    return max(1, min(MOST, (_limit() - OWN) // 3))


def _limit() -> int:
    """How many files this process may open."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return OWN + 3 * MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OWN + 3 * MOST if soft == resource.RLIM_INFINITY else soft
