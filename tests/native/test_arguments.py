"""Odd arguments at the door of the core: an answer or a TypeError, and nothing else."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from coldq import _native
from tests.native.instances import SHAPES

x = np.arange(10.0)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ((x,), "dot takes 2 arrays, or 3 with its outputs, but was given 1"),
        ((x, x, np.empty(()), x), "dot takes 2 arrays, or 3"),
        ((x, [0.0] * 10), "argument 2 is not an array"),
        ((None, x), "argument 1 is not an array"),
        ((x, 1.0), "argument 2 is not an array"),
        ((x, x.astype(np.float32)), "argument 2 is not of aligned float64"),
        ((x, x.astype(">f8")), "argument 2 is not of aligned float64"),
        ((x, np.zeros(81, np.uint8)[1:].view(float)), "argument 2 is not of aligned float64"),
        ((x, x[:9]), "argument 2 has length 9 where 10 is needed"),
        ((x, np.float64(2.0)), "argument 2 is not an array"),
        ((x, np.array(2.0)), "argument 2 has too few axes"),
        ((np.arange(20.0)[::2], x), "argument 1 is not contiguous"),
        ((np.ones((3, 10)), np.ones((4, 10))), "argument 2 does not broadcast"),
        ((x.reshape((1,) * 17 + (10,)), x), "argument 1 has too many axes"),
        ((x, x, np.empty(1)), "argument 3 has not the batch of the others"),
        ((np.ones((3, 10)), x, np.empty(4)), "argument 3 has not the batch of the others"),
        ((x, x, np.broadcast_to(0.0, ())), "argument 3 is not of aligned, writeable float64"),
        ((x, x, x[3:4].reshape(())), "argument 3 overlaps with another"),
        ((np.ones((3, 10)), x, as_strided(np.empty(1), (3,), (0,))), "argument 3 has not"),
    ],
)
def test_what_the_core_cannot_take_is_a_type_error(arrays: tuple, sentence: str) -> None:
    before = x.copy()
    with pytest.raises(TypeError, match=sentence.replace("(", r"\(")):
        _native.dot(*arrays)
    np.testing.assert_array_equal(x, before)


def test_steps_of_a_batch_may_be_anything() -> None:
    numbers = np.arange(240.0).reshape(6, 4, 10)
    for view in (numbers[::-2], numbers[:, ::3], numbers.transpose(1, 0, 2), numbers[:0]):
        expected = [sum((row * x).tolist()) for row in view.reshape(-1, 10)]
        np.testing.assert_allclose(_native.dot(view, x).ravel(), expected)


def test_nan_and_infinity_stay_in_their_own_instances() -> None:
    batch = np.ones((4, 10))
    batch[1, 3], batch[2, 9] = np.nan, np.inf
    out = _native.dot(batch, x)
    assert np.isnan(out[1]) and out[2] == np.inf and (out[[0, 3]] == 45.0).all()


def test_an_output_that_cannot_be_had_is_a_memory_error() -> None:
    wide = np.broadcast_to(np.zeros(1), (2**40, 1))
    with pytest.raises(MemoryError):
        _native.dot(wide, wide)
    with pytest.raises((MemoryError, ValueError)):
        _native.dot(wide[:, None], np.broadcast_to(np.zeros(1), (2**40, 1)))


def arrays() -> st.SearchStrategy:
    """Arrays of small shapes, and what is none: sliced, turned, read-only, of other kinds."""
    shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)
    kinds = st.sampled_from([float, float, float, float, np.float32, int, complex, ">f8"])
    full = st.builds(lambda shape, kind: np.ones(shape, kind), shapes, kinds)
    views = st.sampled_from(
        [lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[..., ::2], lambda a: a[None]]
    )
    viewed = st.builds(lambda array, view: view(array) if array.ndim else array, full, views)
    return st.one_of(viewed, viewed, viewed, st.sampled_from([None, 1.0, "x", 2**80, [1.0]]))


@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_anything_gets_an_answer_or_a_type_error(name: str, data: st.DataObject) -> None:
    count = len(SHAPES[name]) + data.draw(st.integers(0, 1))
    drawn = [data.draw(arrays()) for _ in range(count)]
    try:
        out = getattr(_native, name)(*drawn)
    except TypeError as error:
        assert str(error).startswith(name)
    else:
        assert count > len(SHAPES[name]) or np.isfinite(out).all() or name == "into_ball"


def test_ctrl_c_ends_a_large_batch_within_a_second() -> None:
    many = np.broadcast_to(np.ones(1000), (2_000_000, 1000))  # some seconds of work
    sent: list[float] = []

    def interrupt() -> None:
        time.sleep(0.2)
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        _native.log_capacity(many, many, many)
    assert time.monotonic() - sent[0] < 1.0
    thread.join()


def test_others_run_during_a_large_batch() -> None:
    many = np.broadcast_to(np.ones(1000), (20_000, 1000))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (_native.log_capacity(many, many, many), done.set()))
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 100
