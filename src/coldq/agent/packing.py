"""A feedback as bytes: a line that says what it is made of, then all of its numbers, raw.

The line is JSON: descriptions (:mod:`coldq.base.describe`) of the loss, the constraint, and what
was forecast of both, in which an array is its type and shape. Equal feedback has equal bytes.
"""

from __future__ import annotations

import base64
import json
import math
from functools import lru_cache
from typing import Any

import numpy as np

from coldq.base.describe import DTYPES, build, described, taken_apart
from coldq.base.errors import InvalidInput, NotSaveable
from coldq.slot.feedback import Feedback, Forecast

FLOATS = np.dtype("<f8")
_compact = json.JSONEncoder(separators=(",", ":")).encode


def packed(feedback: Feedback) -> bytes | None:
    """A feedback as bytes, or None if it has functions of the user's own.

    >>> import coldq
    >>> from coldq.agent.packing import packed, unpacked
    >>> data = packed(coldq.Feedback(coldq.Linear([1.0, 2.0]), None))
    >>> data.partition(b"\\n")[0]
    b'[{"type":"Linear","c":{"dtype":"<f8","shape":[2]}},{"type":"Unconstrained"}]'
    >>> unpacked(data).loss
    Linear(c=[1.0, 2.0])
    """
    numbers: list[bytes] = []
    ahead = feedback.forecast
    try:
        line = _line(feedback.loss, numbers), _line(feedback.constraint, numbers)
        if ahead is not None:
            line += _line(ahead.loss, numbers), _line(ahead.constraint, numbers)
    except NotSaveable:
        return None
    return b"".join((b"[", b",".join(line), b"]\n", *numbers))


def unpacked(data: bytes | None) -> Feedback:
    """The feedback that was packed; what is not whole raises ValueError."""
    line, found, numbers = (data or b"").partition(b"\n")
    parts = json.loads(line)
    if not found or not isinstance(parts, list) or len(parts) not in (2, 4):
        raise InvalidInput("a feedback begins with a list of its parts")
    left = memoryview(numbers)

    def whole(part: Any) -> Any:
        """A description with the numbers of its arrays, which follow in the same order."""
        nonlocal left
        if isinstance(part, list):
            return [whole(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "shape" not in part or "type" in part:
            return {name: whole(each) for name, each in part.items()}
        if part.get("dtype") not in DTYPES:
            raise InvalidInput(f"there are no arrays of {part.get('dtype')!r:.80}")
        size = math.prod(part["shape"]) * np.dtype(part["dtype"]).itemsize
        mine, left = left[:size], left[size:]
        return part | {"base64": base64.b64encode(mine).decode("ascii")}

    built: list[Any] = [None if part is None else build(whole(part)) for part in parts]
    loss, constraint, *ahead = built
    if len(left):
        raise InvalidInput(f"a feedback has {len(left)} bytes too many")
    return Feedback(loss, constraint, None, Forecast(*ahead) if ahead else None)


def _line(value: Any, numbers: list[bytes]) -> bytes:
    """What a value is made of, as JSON; its numbers are appended."""
    if value is None:
        return b"null"
    (name, arguments), before, shapes = taken_apart(value), len(numbers), []
    for part in arguments.values():
        if part is None:
            shapes.append(None)
        elif type(part) is np.ndarray and part.dtype == FLOATS:
            shapes.append(part.shape)
            numbers.append(part.tobytes())
        else:
            del numbers[before:]
            whole = described(value, lambda array, _: _header(array, numbers))
            return _compact(whole).encode()
    return _of_floats(name, tuple(arguments), tuple(shapes))


@lru_cache(256)
def _of_floats(
    name: str, words: tuple[str, ...], shapes: tuple[tuple[int, ...] | None, ...]
) -> bytes:
    """The line of a value that is made of arrays of floats alone: most are, again and again."""
    headers = {
        word: None if shape is None else {"dtype": FLOATS.str, "shape": shape}
        for word, shape in zip(words, shapes, strict=True)
    }
    return _compact({"type": name, **headers}).encode()


def _header(array: np.ndarray, numbers: list[bytes]) -> dict[str, Any]:
    plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
    numbers.append(plain.tobytes())
    return {"dtype": plain.dtype.str, "shape": array.shape}
