"""What the library's values share: checked data, equality and hash by content, a short repr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial, update_wrapper
from inspect import Parameter, signature
from math import inf, isfinite
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy import ndarray, vdot
from numpy.typing import ArrayLike, NDArray

from coldq._native import are_finite as are_finite
from coldq._native import frozen
from coldq._native import put as put
from coldq.base.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")
Array = NDArray[np.float64]
FLOAT = np.dtype(np.float64)
MAX_EXACT_INTEGER = 2**53  # whole numbers beyond are not told apart as floats
MASKED_ARRAY = np.ma.MaskedArray
MAX_SINGLE_THREAD_SIZE = 10_000  # entries up to which OpenBLAS takes a product in one thread
COPIED_TYPES = (float, int, list, tuple)  # what NumPy makes a new contiguous array of


def first_index(bad: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(bad)[0])


def real_array(name: str, value: ArrayLike, core: int, *, finite: bool = True) -> Array:
    """A read-only float64 array whose last `core` axes are contiguous, checked.

    An array that nobody can write to is shared, anything else is copied: a value cannot be changed
    from outside.
    """
    own = frozen(value, finite)
    if own is not None and own.ndim >= core:
        return own
    given = _taken(name, value, core)
    if finite and not all_finite(given):
        where = first_index(~np.isfinite(given))
        place = f" at index {where}" if where else ""
        raise InvalidInput(f"{name} must be finite, but is {given[where]}{place}")
    return given


def _taken(name: str, value: ArrayLike, core: int) -> Array:
    """An array of anything, its numbers unseen."""
    given = value if type(value) is ndarray else as_array(name, value)
    if given.dtype.kind not in "fiub":
        raise _not_numbers(name, value, given)
    if given.ndim < core:
        axes = {1: "one axis", 2: "two axes", 3: "three axes"}[core]
        raise InvalidInput(f"{name} needs at least {axes}, but has shape {given.shape}")
    if given.dtype != FLOAT or is_writable(given) or not core_contiguous(given, core):
        if given.dtype != FLOAT or type(value) not in COPIED_TYPES:
            given = np.array(given, dtype=FLOAT, order="C")
        given.flags.writeable = False
    return given


def _not_numbers(name: str, value: Any, given: np.ndarray) -> InvalidInput:
    """An error about a value, given as an array, with the first entry that is no real number."""
    entries = np.array(value, object) if given.dtype.kind in "US" else given  # 1 beside "a" is "1"
    odd = [one for one in entries.ravel().tolist() if not isinstance(one, int | float)]
    verb = "has" if given.ndim else "is"
    words = f"{verb} {odd[0]!r:.80}" if odd else f"is of type {given.dtype}"
    return InvalidInput(f"{name} must be real numbers, but {words}")


def keep_rows(value: Any, of_rows: str, rows: ArrayLike, of_levels: str, levels: ArrayLike) -> None:
    """Make a matrix ``(..., N, p)`` and a vector ``(..., N)`` that belong together, checked, fields
    of a frozen value; the names of both are those of its arguments, too."""
    A, b = real_array(of_rows, rows, 2), real_array(of_levels, levels, 1)
    if A.shape[-2] != b.shape[-1]:
        raise InvalidInput(
            f"{of_rows} of shape {A.shape} needs {of_levels} with {A.shape[-2]} entries on its "
            f"last axis, but {of_levels} has shape {b.shape}"
        )
    if A.ndim > 2 or b.ndim > 1:
        joint_batch(**{of_rows: A.shape[:-2], of_levels: b.shape[:-1]})
    put(value, of_rows, A, of_levels, b)


def is_writable(array: np.ndarray) -> bool:
    """Whether an array can be written to, itself or through what it is a view of."""
    owner = array.base
    return array.flags.writeable or not (
        owner is None or (type(owner) is np.ndarray and not is_writable(owner))
    )


def all_finite(array: Array) -> bool:
    """Whether no entry is NaN or infinite. A product is the fastest look; it may only overflow.

    Of many entries OpenBLAS shares a product among threads, which wait for each other: where cores
    are busy that takes a thousand times as long.
    """
    if array.size <= MAX_SINGLE_THREAD_SIZE and isfinite(vdot(array, array)):
        return True
    return bool(np.isfinite(array).all())


def as_array(name: str, value: Any) -> np.ndarray:
    """Anything as an array; ragged lists, lost labels and the like get a sentence."""
    given: Any = value  # whose type stays open below
    labels = labels_of(given)
    if labels is not None:
        raise InvalidInput(
            f"{name} has labels, {labels}, which would be ignored: pass its to_numpy(), with the "
            "entries in the order of the coordinates"
        )
    if isinstance(value, MASKED_ARRAY) and np.ma.is_masked(given):
        raise InvalidInput(f"{name} must have all its entries, but some are masked: {value}")
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: a tensor with a gradient
        raise InvalidInput(f"{name} must be an array of numbers, but is {value!r}") from error


def labels_of(value: Any) -> str | None:
    """Words for the labels of a Series, a frame or the like; None if entries only have places.

    A plain range from 0 on says no more than a place does.
    """
    kind = cast("type[Any]", type(value))
    if not hasattr(kind, "to_numpy"):
        return None
    coordinates = getattr(value, "coords", None)
    if coordinates is not None and len(coordinates):
        return f"the coordinates {list(coordinates)}"
    for name in ("index", "columns"):
        labels = getattr(value, name, None)
        if labels is None or callable(labels):
            continue
        places = (getattr(labels, "start", None), getattr(labels, "step", None))
        if places != (0, 1):
            return f"the {name} {list(labels)!r:.80}"
    return None


def real_points(name: str, x: Any) -> Array:
    """Points of shape ``(..., p)`` whose number of coordinates is not known, checked."""
    array = as_array(name, x)
    if array.dtype.kind not in "fiub":
        raise _not_numbers(name, x, array)
    if array.ndim == 0:
        raise InvalidInput(f"{name} must be a point of some coordinates, but is {array}")
    return np.ascontiguousarray(array, dtype=np.float64)


def core_contiguous(array: np.ndarray, core: int) -> bool:
    """Whether the last `core` axes lie in memory without gaps, as the core needs them."""
    expected = array.itemsize
    for axis in range(1, core + 1):
        length = array.shape[-axis]
        if length > 1 and array.strides[-axis] != expected:
            return False
        expected *= length
    return True


def point(x: ArrayLike, dim: int, name: str = "x") -> Array:
    """A vector as the core takes it: float64, last axis contiguous and of length `dim`."""
    if (
        type(x) is np.ndarray
        and x.dtype is FLOAT
        and x.ndim
        and x.shape[-1] == dim
        and (x.strides[-1] == 8 or dim < 2)
    ):
        return x
    array = as_array(name, x)
    if array.dtype.kind not in "fiub":
        raise _not_numbers(name, x, array)
    if array.ndim == 0 or array.shape[-1] != dim:
        raise InvalidInput(
            f"{name} must have {dim} coordinates on its last axis, but has shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def quiet(function: Callable[P, T]) -> Callable[P, T]:
    """A function of constants that may be huge: an overflow gives inf, and no warning.

    Constants whose shapes do not fit together get a sentence. Doctests are looked for by a
    function's globals, so that these stay those of its own module.
    """
    name, wrong = function.__qualname__, InvalidInput
    ignore = partial(np.errstate, over="ignore", divide="ignore", invalid="ignore")

    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with ignore():
                return function(*args, **kwargs)
        except ValueError as error:
            if isinstance(error, wrong) or "broadcast" not in str(error):
                raise
            made = args[0].__name__ if args and isinstance(args[0], type) else None  # inherited
            own = name if made is None else f"{made}.{name.rpartition('.')[2]}"
            raise wrong(f"the arguments of {own} do not fit together: {error}") from None

    home = function.__globals__  # type: ignore[attr-defined]
    own = FunctionType(inner.__code__, home, function.__name__, None, inner.__closure__)
    return update_wrapper(own, function)


def joint_batch(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common leading shape of several arrays, or an error that names them."""
    different = set(shapes.values())
    if len(different) == 1:
        return different.pop()
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} has {shape}" for name, shape in shapes.items())
        raise InvalidInput(f"shapes do not fit together: {given}") from None


def joined(arrays: Sequence[Array], core: int) -> Array:
    """Arrays side by side along the first of their core axes; leading axes broadcast."""
    if all(array.ndim == core for array in arrays):
        return np.concatenate(arrays)
    batch = np.broadcast_shapes(*(array.shape[: array.ndim - core] for array in arrays))
    spread = [np.broadcast_to(array, batch + array.shape[array.ndim - core :]) for array in arrays]
    return np.concatenate(spread, axis=len(batch))


def smallest(array: Array) -> float:
    """The smallest entry, infinite if there is none; NaN where one is."""
    if array.ndim == 0:
        return array.item()
    return array.item(array.argmin()) if array.size else inf


def positive(name: str, value: ArrayLike) -> Array:
    """A positive number, or an array of them over leading axes."""
    array = real_array(name, value, 0)
    if not smallest(array) > 0.0:
        raise InvalidInput(f"{name} must be positive, but is {_shown(array)}")
    return array


def non_negative(name: str, value: Any, *, finite: bool = True) -> Array:
    """A number that is not negative, or an array of them; NaN passes where `finite` is False."""
    array = real_array(name, value, 0, finite=finite)
    if (array < 0.0).any():
        raise InvalidInput(f"{name} must not be negative, but is {array}")
    return array


def exponent(name: str, value: ArrayLike) -> Array:
    """V_x or V_g, or an array of them: in [0, 1]."""
    v = real_array(name, value, 0)
    if not ((v >= 0.0) & (v <= 1.0)).all():
        raise InvalidInput(f"{name} must lie in [0, 1], but is {value}")
    return v


def fraction(name: str, value: ArrayLike) -> Array:
    """A number strictly between 0 and 1, or an array of them."""
    array = real_array(name, value, 0)
    if not ((array > 0.0) & (array < 1.0)).all():
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, but is {array}")
    return array


def either(owner: str, **given: Any) -> None:
    """Raise unless exactly one of two arguments is given."""
    if sum(value is not None for value in given.values()) != 1:
        raise InvalidInput(f"{owner} needs either {' or '.join(given)}")


def one_real(name: str, value: Any) -> float:
    """One finite number."""
    array = real_array(name, value, 0)
    if array.ndim:
        raise InvalidInput(f"{name} must be one number, but has shape {array.shape}")
    return float(array)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"{name} must be one of {choices}, but is {value!r:.200}")
    return value


def is_several(value: Any) -> bool:
    """Whether a value is to be gone through; an array without axes says that it is, and is not."""
    return isinstance(value, Iterable) and not (isinstance(value, np.ndarray) and not value.ndim)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    given: Any = value
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be True or False, but is {value!r:.200}")
    return bool(given)


def one_exponent(name: str, value: Any) -> float:
    """One number in [0, 1]."""
    return float(exponent(name, one_real(name, value)))


def one_fraction(name: str, value: Any) -> float:
    """One number strictly between 0 and 1."""
    return float(fraction(name, one_real(name, value)))


def batch_shape(batch: Any) -> tuple[int, ...]:
    """Leading axes as a tuple of whole numbers."""
    try:
        return tuple(whole_number("an axis of batch", axis, 0) for axis in batch)
    except TypeError:
        raise InvalidInput(f"batch must be a tuple such as (8,), but is {batch!r}") from None


def whole_number(name: str, value: Any, least: int) -> int:
    given: Any = value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or given < least:
        raise InvalidInput(
            f"{name} must be a whole number, at least {least}, but is {value!r:.200}"
        )
    if value > MAX_EXACT_INTEGER:
        raise InvalidInput(f"{name} must be at most {MAX_EXACT_INTEGER}, but is {value!r:.200}")
    return int(given)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        if array.size > 12:
            return f"<array {'x'.join(map(str, array.shape))}>"
        return str(array.tolist())
    return repr(value)


def content_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return array.shape, array.dtype.str, array.tobytes()
    return value


def is_ours(value: Any) -> bool:
    """Whether something is the library's own, so that it is a value, equal to another by content.

    A user's own may change under the same hash.
    """
    return type(value).__module__.startswith("coldq.")


def constructor_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are arguments of its constructor, by name."""
    kind = cast("type[Any]", type(value))
    return {name: getattr(value, name) for name in _constructor_names(kind)}


@cache
def _constructor_names(kind: type) -> tuple[str, ...]:
    known = arguments_of(kind)
    return tuple(f.name for f in fields(kind) if f.name in known)


def arguments_of(make: Any) -> Mapping[str, Parameter]:
    """What a function takes, or a class.

    Older releases of Python 3.11 ask its ``__new__`` before an ``__init__`` that is inherited, and
    that of learners takes anything.
    """
    if isinstance(make, type) and make.__init__ is not object.__init__:
        return dict(list(signature(make.__init__).parameters.items())[1:])
    return signature(make).parameters


class Value:
    """A frozen dataclass that compares and hashes by content, arrays included."""

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Unpickled or copied, arrays come writable."""
        for each in attributes.values():
            if isinstance(each, ndarray):
                each.setflags(write=False)
        self._set(**attributes)

    def _arguments(self) -> dict[str, Any]:
        """What its constructor makes an equal one of."""
        return constructor_fields(self)

    def _contents(self) -> tuple[Any, ...]:
        return tuple(content_of(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._contents() == other._contents()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._contents()))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{f.name}={_shown(getattr(self, f.name))}"
            for f in fields(self)  # type: ignore[arg-type]
        )
        return f"{type(self).__name__}({shown})"


def percent(share: float, digits: int = 2) -> str:
    """A share as people write it, with that many digits and never with an exponent above zero.

    >>> from coldq.base.arrays import percent
    >>> percent(1.0), percent(0.0512), percent(0.126), percent(0.00034), percent(123.4)
    ('100%', '5.1%', '13%', '0.034%', '12,340%')
    """
    value = 100.0 * share
    return f"{value:,.0f}%" if abs(value) >= 10.0 ** (digits - 1) else f"{value:.{digits}g}%"
