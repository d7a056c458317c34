"""The native steps and updates with odd arguments: an answer, a refusal or a residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldq import _native
from tests.native.steps import BOX, INPUTS, LOSS, OUTPUTS, ROOTS, SET, drawn, shape

NAMES = sorted(INPUTS)
ODD = (np.nan, np.inf, -np.inf, -0.0, 1e308, -1e308, 5e-324)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def with_odd_number(array: np.ndarray) -> np.ndarray:
    flat = array.copy().ravel()
    flat[: 1 + flat.size // 2] = ODD[flat.size % len(ODD)]
    return flat.reshape(array.shape)


CHANGES: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda a: None,
    lambda a: 1.5,
    lambda a: "x",
    lambda a: a.astype(np.float32),
    lambda a: a.astype(">f8"),
    lambda a: a[None],
    lambda a: np.stack([a, a]),
    lambda a: np.stack([a, a])[::-1],
    lambda a: np.stack([a, a])[:0],
    lambda a: np.broadcast_to(a, (3, 1, *a.shape)),
    lambda a: a.T,
    lambda a: np.repeat(a, 2, axis=-1) if a.ndim else a,
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    lambda a: np.repeat(a, 2, axis=0)[::2] if a.ndim else a,
    lambda a: a[..., :0] if a.ndim else a,
    lambda a: a[::-1] if a.ndim else a,
    lambda a: np.zeros(8 * a.size + 1, np.uint8)[1:].view(float).reshape(a.shape),
    lambda a: np.broadcast_to(np.zeros(1), (2**40, 2**10, *a.shape)) if a.ndim < 2 else a,
    read_only,
    with_odd_number,
    with_odd_number,
    with_odd_number,
)


def as_bytes(arguments: list[Any]) -> list[Any]:
    return [
        a.tobytes() if isinstance(a, np.ndarray) and a.size < 10**6 else None for a in arguments
    ]


@settings(max_examples=400)
@given(st.sampled_from(NAMES), st.data())
def test_anything_gets_an_answer_or_a_refusal(name: str, data: st.DataObject) -> None:
    small = st.sampled_from([0, 1, 2, 3, 5, 9, 17])
    sizes = {axis: data.draw(small) for axis in "nmpek"}
    batch = data.draw(st.sampled_from([(), (), (1,), (2, 3), (20,), (0,)]))
    arguments: list[Any] = drawn(name, np.random.default_rng(1), batch, **sizes)
    outputs: list[Any] = []
    if data.draw(st.booleans()):
        outputs = [np.empty(shape(core, sizes, batch)) for core in OUTPUTS[name]]
    for _ in range(data.draw(st.integers(0, 3))):
        which = data.draw(st.integers(0, len(arguments) + len(outputs) - 1))
        into, place = (
            (arguments, which) if which < len(arguments) else (outputs, which - len(arguments))
        )
        if isinstance(into[place], np.ndarray) and into[place].size < 10**6:
            with np.errstate(over="ignore"):  # of a number that is too large for float32
                into[place] = data.draw(st.sampled_from(CHANGES))(into[place])
    if outputs and data.draw(st.booleans()):  # one that is also an input, or a part of one
        same = data.draw(st.sampled_from([a for a in arguments if isinstance(a, np.ndarray)]))
        outputs[data.draw(st.integers(0, len(outputs) - 1))] = same
    before = as_bytes(arguments)
    try:
        getattr(_native, name)(*arguments, *outputs)
    except (TypeError, MemoryError, ValueError) as refusal:
        assert str(refusal).startswith(name) or not isinstance(refusal, TypeError)
    assert as_bytes(arguments) == before


@pytest.mark.parametrize("name", sorted(LOSS))
@pytest.mark.parametrize(
    "kept", ["", "vector", "levels", "matrix", "vector oblong", "vector levels"]
)
def test_a_loss_without_a_gradient_is_refused(name: str, kept: str) -> None:
    arguments = drawn(name, np.random.default_rng(2), n=2, m=7, p=5)
    at = LOSS[name]
    matrix, levels = arguments[at + 1], arguments[at + 2]
    arguments[at] = np.ones(5) if "vector" in kept else None
    arguments[at + 1] = matrix if "matrix" in kept or "oblong" in kept else None
    arguments[at + 2] = levels if "levels" in kept else None
    if kept == "vector":
        assert np.isfinite(getattr(_native, name)(*arguments)[-1]).all()
        return
    with pytest.raises(TypeError, match=f"{name}: the arrays do not belong together"):
        getattr(_native, name)(*arguments)


@pytest.mark.parametrize("name", ["affine_step", "working_set_step", *ROOTS])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (2, 9), (5, 20), (30, 8)])
def test_no_answer_made_of_nan_is_told_as_sound(name: str, n: int, p: int) -> None:
    # Compliance counts by multipliers alone, so that none is a loss where all are zero.
    step = getattr(_native, name)
    n = min(n, 5) if name == "ball_step" else n  # of more it may give up
    for which in set(range(10)) - ({5} if SET[name].get(5) == 0.0 else set()):
        for seed in range(12):
            arguments = drawn(name, np.random.default_rng(seed), n=n, p=p)
            assert step(*arguments)[2] <= 1e-6
            place = np.random.default_rng(seed).integers(arguments[which].size)
            arguments[which] = np.array(arguments[which])
            arguments[which].flat[place] = np.nan
            together = [
                arguments,
                *(drawn(name, np.random.default_rng(k), n=n, p=p) for k in range(9)),
            ]
            assert not step(*arguments)[2] <= 1e-6
            batch = step(*(np.stack(parts) for parts in zip(*together, strict=True)))
            assert not batch[2][0] <= 1e-6
            assert (batch[2][1:] <= 1e-6).all()


@pytest.mark.parametrize("name", ["affine_step", "working_set_step", *ROOTS[:3]])
def test_what_is_no_problem_is_told_as_none(name: str) -> None:
    step, box = getattr(_native, name), BOX[name]
    for change in (
        {2: 0.0},
        {2: -1.0},
        {box: 2.0},
        {3: 1e3},
    ):  # alpha, lower > upper, floor > weight
        arguments = drawn(name, np.random.default_rng(3), n=3, p=4)
        for which, number in change.items():
            arguments[which] = np.full_like(arguments[which], number)
        assert not step(*arguments)[2] <= 1e-6


@pytest.mark.parametrize("name", ["affine_step", "working_set_step"])
def test_nothing_at_all_has_an_answer(name: str) -> None:
    step, rng = getattr(_native, name), np.random.default_rng(4)
    x, multipliers, residual = step(*drawn(name, rng, n=0, p=3))
    assert x.shape == (3,) and multipliers.shape == (0,) and residual == 0.0
    arguments = drawn(name, rng, n=2, p=0)
    arguments[7] = np.array([1.0, -1.0])  # rows 0 <= 1 and 0 <= -1
    x, multipliers, residual = step(*arguments)
    assert x.shape == (0,) and residual == 0.0
    assert multipliers.tolist() == [0.0, arguments[4][1]]
    arguments[4][1] = np.inf
    assert step(*arguments)[2] == np.inf  # enforced, it cannot hold


def test_members_may_have_limits_of_their_own() -> None:
    rng = np.random.default_rng(5)
    arguments = drawn("affine_step", rng, (64,), n=4, p=6)
    arguments[10] = np.where(np.arange(64) % 3 == 0, np.inf, 24.0)
    together = _native.affine_step(*arguments)
    for k in range(64):
        one = _native.affine_step(*(a if a.shape == (6,) else a[k] for a in arguments))
        for its, all_of_them in zip(one, together, strict=True):
            assert np.asarray(its).tobytes() == all_of_them[k].tobytes()
