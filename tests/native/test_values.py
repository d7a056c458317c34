"""What makes values of a user's arrays: who may write to them, and that nothing is left behind."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import coldq
from coldq._native import are_finite, frozen, put

RNG = np.random.default_rng(4)


def odd_things() -> list[Any]:
    flat = np.arange(12.0)
    alone, view = np.arange(3.0), flat[:3]
    alone.flags.writeable = view.flags.writeable = False
    return [
        flat, flat.reshape(3, 4), flat[::2], flat.reshape(3, 4).T, flat[1:], alone, view,
        np.array(1.5), np.zeros((0, 3)), np.array([1.0, np.nan]), np.array([[np.inf]]),
        np.array([-np.inf, 0.0]), np.array([1e308, -1e308, 5e-324]), np.arange(3),
        np.arange(3, dtype=np.float32), flat.astype(">f8"), np.ma.array([1.0]), np.array([True]),
        [1.0], None, "text", 1, True, np.array([1 + 1j]), np.array([None]),
        np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float64),
    ]  # fmt: skip


def is_plain(thing: Any) -> bool:
    """Whether this is a contiguous array of float64."""
    return (
        type(thing) is np.ndarray
        and thing.dtype == np.float64
        and thing.flags.carray
        | (thing.flags.c_contiguous and thing.flags.aligned and not thing.flags.writeable)
    )


def assert_copy(own: Any, given: Any) -> None:
    """Same numbers in memory of its own, which nobody can write to."""
    assert (own.shape, own.dtype, own.tobytes()) == (given.shape, given.dtype, given.tobytes())
    assert type(own) is np.ndarray and own.flags.owndata and own.flags.c_contiguous
    assert not np.shares_memory(own, given) and given.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        own[...] = 0.0


@pytest.mark.parametrize("infinite", [False, True], ids=["finite", "any numbers"])
def test_what_nobody_can_write_to_is_shared_and_else_copied(infinite: bool) -> None:
    copies = shared = 0
    for thing in odd_things():
        own = frozen(thing, not infinite)
        if not is_plain(thing) or not (infinite or np.isfinite(thing).all()):
            assert own is None
        elif thing.flags.writeable:
            assert_copy(own, thing)
            copies += 1
        else:
            assert own is (None if thing.base is not None else thing)
            shared += 1
    assert (copies, shared) == (9 if infinite else 6, 2)


def test_a_number_becomes_an_array_without_axes() -> None:
    for number in (1.5, -0.0, np.float64(2.5)):
        own = frozen(number)
        assert type(own) is np.ndarray and (own.shape, own.dtype) == ((), np.float64)
        assert own.tobytes() == np.float64(number).tobytes() and not own.flags.writeable
    assert frozen(np.inf) is frozen(float("nan")) is None
    assert np.isnan(frozen(float("nan"), False)) and frozen(np.inf, False) == np.inf


def test_fields_are_put_into_frozen_values() -> None:
    value, A = object.__new__(coldq.Affine), np.ones((1, 2))
    put(value, "A", A, "b", "text")
    assert (value.A is A, value.b) == (True, "text")
    put(value, "b", None)
    put(value)
    assert vars(value) == {"A": A, "b": None}


def test_whole_arrays_are_finite_if_all_of_them_are() -> None:
    taken = 0
    for thing in odd_things():
        sound = is_plain(thing) and bool(np.isfinite(thing).all())
        assert are_finite(thing) == are_finite(np.ones(3), thing) == sound
        taken += sound
    assert taken == 8 and are_finite()


def test_nothing_is_left_behind() -> None:
    sound, levels, value = RNG.normal(size=(3, 4)), RNG.normal(size=3), object.__new__(coldq.Affine)
    for act, wrong in (
        (frozen, ()), (frozen, (sound, True, levels)), (put, (value, "A")), (put, ()),
        (put, (object(), "A", sound)), (put, (value, 1, sound)),
    ):  # fmt: skip
        with pytest.raises((TypeError, AttributeError)):
            act(*wrong)
    shared = frozen(sound)
    given = sound, levels, value, shared, "A", "b"
    counts = [sys.getrefcount(thing) for thing in (*given, None)]
    for _ in range(1000):
        for thing in (sound, levels, shared, "text"):
            frozen(thing)
            are_finite(sound, thing)
        put(value, "A", sound, "b", levels)
    after = [sys.getrefcount(thing) for thing in (*given, None)]
    assert np.abs(np.subtract(after, counts)).max() < 100
    assert sys.getrefcount(frozen(sound)) == sys.getrefcount(sound.copy())
