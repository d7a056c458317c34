"""A feedback as bytes: a line that says what it is made of, then all of its numbers, raw.

The line is JSON: descriptions (:mod:`coldq.base.describe`) of the loss, the constraint, and what
was forecast of both, in which an array is its type and shape. Equal feedback has equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from coldq.base.describe import Decoder, Encoder
from coldq.base.errors import InvalidInput, NotSaveable
from coldq.slot.feedback import Feedback, Forecast

FLOAT = np.dtype("<f8")  # of most arrays
_compact = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _Encoder(Encoder):
    """An encoder that collects the bytes of arrays, and writes their types and shapes alone."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[bytes] = []

    def array(self, array: np.ndarray, path: str) -> Any:
        if array.dtype != FLOAT:
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        self.numbers.append(array.tobytes())
        return {"dtype": array.dtype.str, "shape": array.shape}


class _Decoder(Decoder):
    """A decoder that takes the bytes of arrays from those that are left, in their order."""

    array_keys = dict.fromkeys(("dtype", "shape")).keys()

    def __init__(self, numbers: bytes) -> None:
        super().__init__()
        self.left = memoryview(numbers)

    def array_bytes(self, value: Mapping[str, Any], needed: int, path: str) -> memoryview:
        mine, self.left = self.left[:needed], self.left[needed:]
        return mine


def encode(feedback: Feedback) -> bytes | None:
    """A feedback as bytes, or None if it has functions of the user's own.

    >>> import coldq
    >>> from coldq.agent.encoding import decode, encode
    >>> data = encode(coldq.Feedback(coldq.Linear([1.0, 2.0]), None))
    >>> data.partition(b"\\n")[0]
    b'[{"type":"Linear","c":{"dtype":"<f8","shape":[2]}},{"type":"Unconstrained"}]'
    >>> decode(data).loss
    Linear(c=[1.0, 2.0])
    """
    encoder, ahead = _Encoder(), feedback.forecast
    parts = [feedback.loss, feedback.constraint]
    if ahead is not None:
        parts += ahead.loss, ahead.constraint
    try:
        line = [None if part is None else encoder.object(part) for part in parts]
    except NotSaveable:
        return None
    return b"".join((_compact(line).encode(), b"\n", *encoder.numbers))


def decode(data: bytes | None) -> Feedback:
    """The feedback that was encoded; what is not whole raises ValueError."""
    line, found, numbers = (data or b"").partition(b"\n")
    parts, decoder = json.loads(line), _Decoder(numbers)
    if not found or not isinstance(parts, list) or len(parts) not in (2, 4):
        raise InvalidInput("a feedback begins with a list of its parts")
    loss, constraint, *ahead = (decoder.decode(part, "the feedback") for part in parts)
    if len(decoder.left):
        raise InvalidInput(f"a feedback has {len(decoder.left)} bytes too many")
    return Feedback(loss, constraint, None, Forecast(*ahead) if ahead else None)
