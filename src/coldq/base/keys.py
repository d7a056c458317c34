"""Keys of TOML files and keyword arguments: declared once, checked, and written up from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np

from coldq.base.errors import InvalidInput, NotReadable

T = TypeVar("T")


class Place(NamedTuple):
    """Where keys stand, which begins every sentence about them, and the names they may use."""

    where: str
    names: tuple[str, ...] = ()

    def wrong(self, words: str) -> InvalidInput:
        """An error about this place."""
        return InvalidInput(f"{self.where}: {words}")


class Key(NamedTuple):
    """One key of a file, in the annotation of a dataclass field that is set by it.

    `read` checks a value and says in its docstring what it takes; `meaning` is what the key says.
    A field without a default is a key that is needed.

    >>> from dataclasses import make_dataclass
    >>> from typing import Annotated
    >>> from coldq.base.keys import Key, Place, keys_table, read_keys, real
    >>> least = Annotated[float, Key(real, "the least price")]
    >>> most = Annotated[float, Key(real, "the most")]
    >>> Price = make_dataclass("Price", [("least", least), ("most", most, 9.0)])
    >>> read_keys(Price, Place("prices.toml"), {"least": 2})
    Price(least=2.0, most=9.0)
    >>> read_keys(Price, Place("prices.toml"), {"leest": 2})
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: prices.toml: there is no key 'leest' (did you mean 'least'?); there are ...
    >>> print(keys_table(Price))
    | key | says | takes |
    | --- | --- | --- |
    | `least` | the least price | a number |
    | `most` | the most | a number |
    """

    read: Callable[[Place, str, Any], Any]
    meaning: str


@cache
def keys_of(kind: type) -> dict[str, Key]:
    """The keys of a dataclass by name."""
    hints = get_type_hints(kind, include_extras=True)
    given = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: one for name, found in given.items() for one in found if isinstance(one, Key)}


def read_keys(kind: type[T], place: Place, given: Any, **others: Any) -> T:
    """A dataclass of the keys that are given and of other fields; None is a key left out."""
    known = keys_of(kind)
    require_keys(place.where, given, known)
    for name, key in known.items():
        if given.get(name) is not None:
            others[name] = key.read(place, name, given[name])
        elif not hasattr(kind, name):  # where a default would be
            raise place.wrong(f"needs {name}: {key.meaning}")
    return kind(**others)


def keys_table(kind: type) -> str:
    """The keys of a dataclass as a table in Markdown."""
    lines = ["| key | says | takes |", "| --- | --- | --- |"]
    for name, (read, meaning) in keys_of(kind).items():
        words = (read.__doc__ or "").partition("\n")[0].rstrip(".")
        lines.append(f"| `{name}` | {meaning} | {words[:1].lower()}{words[1:]} |")
    return "\n".join(lines)


def text(place: Place, key: str, value: Any) -> str:
    """Some text."""
    if not isinstance(value, str) or not value:
        raise place.wrong(f"{key} must be some text, but is {value!r:.80}")
    return value


def real(place: Place, key: str, value: Any) -> float:
    """A number."""
    given: Any = value
    is_real = isinstance(value, int | float | np.integer | np.floating)
    try:
        if isinstance(value, bool) or not is_real or not np.isfinite(float(given)):
            raise place.wrong(f"{key} must be a finite number, but is {value!r:.80}")
    except OverflowError:  # of a whole number, which Python lets have any size
        largest = np.finfo(np.float64).max
        raise place.wrong(f"{key} must be at most {largest:.3g} in size, but is beyond") from None
    return float(given)


def require_keys(where: str, keys: Any, known: Iterable[str]) -> None:
    """Raise unless all keys are known; the sentence names the nearest one that is."""
    known = tuple(known)
    if not isinstance(keys, Mapping):
        raise InvalidInput(f"{where}: must be keys and values, but is {keys!r:.80}")
    named = cast(Mapping[Any, Any], keys)
    for key in named:
        if key not in known:
            hint = nearest(key, known) if isinstance(key, str) else ""
            there = ", ".join(known)
            raise InvalidInput(f"{where}: there is no key {key!r}{hint}; there are {there}")


def require_number(where: str, key: str, value: Any) -> float:
    """A finite number under a key."""
    return real(Place(where), key, value)


def require_text(where: str, key: str, value: Any, *, optional: bool = False) -> Any:
    """Some text under a key, or none if it is optional."""
    return None if optional and value is None else text(Place(where), key, value)


def nearest(word: str, known: Iterable[Any]) -> str:
    """A suggestion, if one of the known words is like this one.

    >>> from coldq.base.keys import nearest
    >>> nearest("at_last", ["at_least", "at_most"])
    " (did you mean 'at_least'?)"
    """
    folded = {one.lower(): one for one in known if isinstance(one, str)}
    close = get_close_matches(word.lower(), list(folded), 1, 0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def read_toml(path: Path) -> dict[str, Any]:
    """The keys of a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise NotReadable(f"{path}: cannot be read ({reason})") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError too
        raise NotReadable(f"{path}: is not TOML ({error})") from None
