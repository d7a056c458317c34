"""The fingerprint of a learner, which its states carry: enough text to name a difference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import numpy as np

from coldq.base.describe import Encoder, number
from coldq.base.errors import InvalidInput, UnknownLearner, warn

KEY = "learner"  # the name of the fingerprint among a state's arrays
MAX_WRITTEN_NUMBERS = 12  # of an array; a longer one has a digest
MAX_SHOWN_DIFFERENCES = 3
REMEDY = "from_arrays(arrays, strict=False) takes them all the same"


class Fingerprint:
    """Class and parameters of a learner, and the version of its states' format.

    One is shared by all states of a learner, and its text is worked out when it is first asked
    for, so that an update pays nothing for it. What a plain function computes is not known, so
    that it never counts as a difference.

    >>> import coldq
    >>> X = coldq.Box(0.0, 1.0, dim=2)
    >>> coldq.OGD(X, eta=0.5).init(0).fingerprint
    Fingerprint(OGD)
    """

    __slots__ = ("_text", "learner", "name", "updated_by")

    def __init__(self, learner: Any, text: str | None = None) -> None:
        self.learner = learner
        self._text = text
        self.name = type(learner).__name__ if text is None else json.loads(text)["learner"]
        # Whose update takes the states: a network's agents run the learner inside.
        self.updated_by = self.name

    @property
    def text(self) -> str:
        """The fingerprint as JSON."""
        if self._text is None:
            version = self.learner.state_type.version
            parameters = _Encoder().object(self.learner) if is_dataclass(self.learner) else {}
            parameters.pop("type", None)
            whole = {"learner": self.name, "format": version, "parameters": parameters}
            self._text = json.dumps(whole)
        return self._text

    def __reduce__(self) -> Any:
        return _from_text, (self.text, self.updated_by)  # a learner may hold a plain function

    def __repr__(self) -> str:
        return f"Fingerprint({self.name})"


def _from_text(text: str, updated_by: str) -> Fingerprint:
    fingerprint = Fingerprint(None, text)
    fingerprint.updated_by = updated_by
    return fingerprint


def require_same(saved: str, own: Fingerprint, what: str, remedy: str) -> None:
    """Raise unless `saved` describes the same learner; the sentence names what differs."""
    if saved == own.text:
        return
    try:
        then = json.loads(saved)
        name, version, parameters = then["learner"], then["format"], then["parameters"]
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"the array {KEY!r} must be the text that state.to_arrays() wrote, but is {saved!r:.80}"
        ) from None
    now = json.loads(own.text)
    if name != own.name:
        raise InvalidInput(f"{what} by {name}, but this is {own.name}; {remedy}")
    if version != now["format"]:
        raise InvalidInput(
            f"{what} in format {version} of {name}'s state, but this version of coldq has format "
            f"{now['format']}; {remedy}"
        )
    parameters = _with_defaults(parameters, own.learner, now["parameters"])
    found = sorted(_differences(parameters, now["parameters"], ""), key=lambda d: d[0].count("."))
    if not found:
        return
    shown, more = found[:MAX_SHOWN_DIFFERENCES], len(found) - MAX_SHOWN_DIFFERENCES
    was, here = (", ".join(f"{d[0]}={_shown(d[k])}" for d in shown) for k in (1, 2))
    names = ", ".join(d[0] for d in shown) + (f" and {more} more" if more > 0 else "")
    verb = "differs" if len(found) == 1 else "differ"
    raise InvalidInput(
        f"{what} by {name}({was}), but this is {name}({here}): {names} {verb}; {remedy}"
    )


def _with_defaults(saved: Any, learner: Any, now: Any) -> Any:
    """Saved parameters, with the default of each that the learner had not when they were saved."""
    if learner is None or not _says(saved):
        return saved
    arguments = signature(type(learner).__init__).parameters
    words = {name: arguments[name].default for name in now if name in arguments}
    return {name: word for name, word in words.items() if isinstance(word, str)} | saved


def recognised(
    arrays: Any, own: Fingerprint, strict: bool, restore: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """Arrays without the text that says whose they are, once that is known to agree.

    Where it does not, `restore` is asked whether they could be taken all the same.
    """
    rest = {name: array for name, array in arrays.items() if name != KEY}
    if not strict or KEY not in arrays:
        return rest
    texts = np.asarray(arrays[KEY])
    if texts.dtype.kind not in "US":
        raise InvalidInput(
            f"the array {KEY!r} must be the text that state.to_arrays() wrote, but is of type "
            f"{texts.dtype}"
        )
    for text in np.unique(texts.astype(str)):  # several, where arrays of several states are stacked
        if text != own.text:
            remedy = _remedy(rest, restore)
            require_same(str(text), own, "these arrays were saved", remedy)
    return rest


def _remedy(arrays: dict[str, Any], restore: Callable[[dict[str, Any]], Any]) -> str:
    try:
        restore(arrays)
    except InvalidInput as error:
        return f"nor would from_arrays(arrays, strict=False) take them: {error}"
    return REMEDY


def warn_unknown(own: Fingerprint) -> None:
    """Warn that arrays were taken without a word on who saved them."""
    warn(
        f"these arrays do not say which learner saved them, so that {own.name} takes them without "
        "a look at its parameters; states that it saves from now on say so",
        UnknownLearner,
    )


class _Encoder(Encoder):
    """An encoder for any class, with digests of long arrays, that knows no function."""

    def taken_apart(self, value: Any, path: str) -> tuple[str, Mapping[str, Any]]:
        return type(value).__name__, {f.name: getattr(value, f.name) for f in fields(value)}

    def array(self, array: np.ndarray, path: str) -> Any:
        if array.dtype.kind not in "biuf":
            return {"unknown": f"an array of {array.dtype}"}
        if array.size <= MAX_WRITTEN_NUMBERS:
            return number(array.tolist())
        data = np.ascontiguousarray(array, "<f8").tobytes()
        return {"shape": list(array.shape), "sha256": hashlib.sha256(data).hexdigest()}

    def unknown(self, value: Any, path: str) -> Any:
        name = "a function" if hasattr(value, "__name__") else f"a {type(value).__name__}"
        return {"unknown": name}


def _differences(was: Any, now: Any, path: str) -> list[tuple[str, Any, Any]]:
    """Where two descriptions differ: the path, and both values."""
    if _says(was, "unknown") or _says(now, "unknown"):
        return []
    tables = all(_says(value) and not _says(value, "sha256") for value in (was, now))
    if tables and was.get("type") == now.get("type") and set(was) == set(now):
        lead = f"{path}." if path else ""
        return [d for name in now for d in _differences(was[name], now[name], lead + name)]
    if all(map(_is_list, (was, now))) and len(was) == len(now) and any(map(_says, was + now)):
        pairs = enumerate(zip(was, now, strict=True))
        return [d for k, (a, b) in pairs for d in _differences(a, b, f"{path}[{k}]")]
    return [] if was == now else [(path, was, now)]


def _is_list(value: Any) -> bool:
    return type(value) is list


def _says(value: Any, word: str | None = None) -> bool:
    """Whether a part of a description is a table, with this word if one is given."""
    return type(value) is dict and (word is None or word in value)


def _shown(value: Any) -> str:
    """A described parameter as Python would print it."""
    if _says(value, "sha256"):
        return f"<array {'x'.join(map(str, value['shape']))}>"
    if _says(value, "type"):
        inner = ", ".join(f"{n}={_shown(v)}" for n, v in value.items() if n != "type")
        return f"{value['type']}({inner})"
    return value if isinstance(value, str) else f"{value!r:.80}"
