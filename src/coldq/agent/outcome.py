"""The outcome of a round: the state after it if that is little to write, else a digest of it.

Feedback that is applied again when a file is opened may give other bits where coldq was upgraded,
or the processor is another one. So each round has what it gave when it was told.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from coldq.learners.fingerprint import KEY

MAX_WHOLE_STATE_BYTES = 1024  # a state that is no longer than its feedback is kept whole too
DIGEST_BYTES = 16
WHOLE_MARK, DIGEST_MARK = b"=", b"#"


def outcome(state: Any, feedback: int) -> bytes:
    """The bits of a state, or their digest; `feedback` is the bytes of what led to it.

    >>> import coldq
    >>> from coldq.agent.outcome import outcome
    >>> learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=2), eta=0.1)
    >>> outcome(learner.init(0), feedback=80)[:1], len(outcome(learner.init(0), feedback=80))
    (b'=', 25)
    """
    bits = _bits(state)
    return WHOLE_MARK + bits if len(bits) <= max(MAX_WHOLE_STATE_BYTES, feedback) else _digest(bits)


def is_of(known: bytes, state: Any) -> bool:
    """Whether an outcome belongs to a state."""
    bits = _bits(state)
    return known == (WHOLE_MARK + bits if known.startswith(WHOLE_MARK) else _digest(bits))


def recalled(known: bytes, state: Any, learner: Any) -> Any:
    """The state of an outcome, in the shapes of another state; None if it was not kept."""
    arrays, begin = state.to_arrays(), 1
    sizes = {name: _plain(array).nbytes for name, array in arrays.items() if name != KEY}
    if known[:1] != WHOLE_MARK or len(known) != 1 + sum(sizes.values()):
        return None
    for name, size in sizes.items():
        like = _plain(arrays[name])
        kept = np.frombuffer(known[begin : begin + size], like.dtype).reshape(like.shape)
        arrays[name], begin = kept.astype(arrays[name].dtype), begin + size
    return learner.from_arrays(arrays)


def _bits(state: Any) -> bytes:
    return b"".join(_plain(a).tobytes() for name, a in state.to_arrays().items() if name != KEY)


def _digest(bits: bytes) -> bytes:
    return DIGEST_MARK + blake2b(bits, digest_size=DIGEST_BYTES).digest()


def _plain(array: np.ndarray) -> np.ndarray:
    """An array with little-endian bytes, on any machine."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
