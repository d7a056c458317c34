"""The paper's problems: their distributions, their constants, and seeds that stay themselves."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.problems import JobScheduling, OnlineLinear, OnlineQuadratic, TimeVarying


def slots(problem, seeds, count):
    stream = problem.start(seeds)
    return [stream.reveal(t, problem.domain.start()) for t in range(1, count + 1)]


@pytest.mark.parametrize(
    "problem", [TimeVarying(300), OnlineQuadratic(300), OnlineLinear(300), JobScheduling(300)]
)
def test_a_seed_s_data_is_the_same_whatever_runs_beside_it(problem) -> None:
    together, alone = slots(problem, [5, 6, 7], 300), slots(problem, [6], 300)
    for many, one in zip(together, alone, strict=True):
        for part in ("loss", "constraint"):
            a, b = getattr(many, part), getattr(one, part)
            for name in ("H", "y", "A", "b", "c", "q", "r", "demand"):
                if hasattr(a, name):
                    mine, same = getattr(a, name), getattr(b, name)
                    if len(mine) == 3 and len(same) == 1:
                        mine, same = mine[1], same[0]  # otherwise it is shared by all seeds
                    assert mine.tobytes() == same.tobytes()


@pytest.mark.parametrize("problem", [TimeVarying, JobScheduling])
def test_a_longer_horizon_does_not_change_the_slots_before(problem) -> None:
    short, long = slots(problem(10), [0], 10), slots(problem(999), [0], 10)
    for a, b in zip(short, long, strict=True):
        assert a.loss == b.loss
        assert a.constraint == b.constraint


def test_time_varying_draws_what_the_paper_says() -> None:
    drawn = slots(TimeVarying(), range(4), 1500)
    H = np.stack([s.loss.H for s in drawn])
    y = np.stack([s.loss.y for s in drawn])
    A, b = (np.stack([getattr(s.constraint, k) for s in drawn]) for k in "Ab")
    assert H.shape == (1500, 4, 4, 10)
    assert A.shape == (1500, 4, 2, 10)
    for array, low, high in ((H, -1.0, 1.0), (A, 0.0, 1.0), (b, 0.0, 1.0)):
        assert low <= array.min() < low + 0.01
        assert high - 0.01 < array.max() <= high
        np.testing.assert_allclose(array.mean(), 0.5 * (low + high), atol=0.01)
        np.testing.assert_allclose(array.std(), (high - low) / np.sqrt(12.0), rtol=0.02)
    noise = y - H.sum(axis=-1)
    np.testing.assert_allclose([noise.mean(), noise.std()], [0.0, 1.0], atol=0.03)
    # No correlation between slots, rows or seeds.
    flat = np.stack([H[:-1, 0, 0, 0], H[1:, 0, 0, 0], H[:-1, 1, 0, 0], A[:-1, 0, 0, 0]])
    assert np.abs(np.corrcoef(flat) - np.eye(4)).max() < 0.1


def test_fixed_constraint_problems_draw_what_the_paper_says() -> None:
    stream = OnlineLinear().start(range(200))
    A, b, theta = stream.constraint.A, stream.constraint.b, stream.theta
    assert A.shape == (200, 3, 2)
    assert 0.1 <= A.min() < 0.11 < 0.49 < A.max() <= 0.5
    assert 0.0 <= b.min() < 0.01 < 0.29 < b.max() <= 0.3
    t = np.arange(1, 5001)
    negative = (t <= 1500) | ((t >= 2000) & (t <= 3500)) | (t >= 4000)
    np.testing.assert_allclose(theta[negative].mean(), -0.5, atol=0.02)
    np.testing.assert_allclose(theta[~negative].mean(), 0.5, atol=0.03)
    # Every edge of the three ranges lies on the side that the paper says.
    means = theta.mean(axis=(1, 2))
    for slot, mean in ((1, -0.5), (1500, -0.5), (1501, 0.5), (1999, 0.5), (2000, -0.5),
                       (3500, -0.5), (3501, 0.5), (3999, 0.5), (4000, -0.5)):  # fmt: skip
        assert abs(means[slot - 1] - mean) < 0.45
    # theta^3 is +1 in exactly half of the slots: subtracting it leaves a narrower distribution.
    assert np.abs(theta).max() <= 5000.0**0.1 + 2.0
    both = np.sign(theta).prod(axis=-1).mean()
    assert both > 0.1  # theta^3 is shared by the two coordinates


def test_the_quadratic_loss_is_the_paper_s() -> None:
    stream = OnlineQuadratic(50).start([0])
    x = np.array([[0.3, 0.9]])
    for t in range(1, 51):
        theta = stream.theta[t - 1]
        expected = np.square(x - theta).sum() + 20.0 * (theta * x).sum()
        np.testing.assert_allclose(stream.reveal(t, x).loss.value(x), [expected])


@pytest.mark.parametrize(
    "problem",
    [TimeVarying(400), TimeVarying(400, coldq.Box(-5.0, 5.0, dim=10)), OnlineQuadratic(400),
     OnlineLinear(400), OnlineQuadratic(400, coldq.Box([-1.0, 0.5], [2.0, 0.7]))],
)  # fmt: skip
def test_constants_bound_what_is_revealed(problem) -> None:
    known, rng = problem.constants, np.random.default_rng(0)
    low, high = problem.domain.lower, problem.domain.upper
    x = np.where(rng.random((64, 1, low.size)) < 0.5, low, high)
    G = L = D = 0.0
    for revealed in slots(problem, range(3), 400):
        G = max(G, np.abs(revealed.constraint.value(x)).max())
        D = max(D, np.linalg.norm(revealed.loss.gradient(x), axis=-1).max())
        L = max(L, np.linalg.norm(revealed.constraint.jacobian(x), axis=-1).max())
    assert known.diameter == problem.domain.diameter
    assert 0.2 * known.constraint_bound < G <= known.constraint_bound
    assert 0.1 * known.gradient_bound < D <= known.gradient_bound
    assert known.constraint_lipschitz >= L
    assert set(known.note) == {"gradient_bound", "constraint_bound", "constraint_lipschitz"}


def test_the_origin_is_feasible_in_every_slot() -> None:
    for problem in (TimeVarying(200), OnlineLinear(200)):
        zero = np.zeros(problem.domain.dim)
        assert all((s.constraint.value(zero) <= 0.0).all() for s in slots(problem, range(3), 200))


def test_problems_are_values() -> None:
    assert TimeVarying(10) == TimeVarying(10)
    assert TimeVarying(10) != TimeVarying(11)
    assert OnlineLinear(10) != OnlineQuadratic(10)
    assert len({TimeVarying(10), TimeVarying(10)}) == 1


def test_bad_problems_get_a_sentence() -> None:
    for make, words in [
        (lambda: TimeVarying(horizon=1), "horizon must be a whole number, at least 2"),
        (lambda: TimeVarying(n_constraints=-1), "n_constraints must be a whole number"),
        (lambda: TimeVarying(domain=coldq.Box(0.0, np.inf, dim=2)), "needs a bounded domain"),
        (lambda: TimeVarying(domain=coldq.Box(np.zeros((2, 3)), 1.0)), "has the leading axes"),
        (lambda: OnlineLinear(domain=coldq.Box(0.0, 1.0, dim=3)), "has 2 coordinates"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            make()
    stream = TimeVarying(500).start([0])
    stream.reveal(300, np.zeros(10))
    with pytest.raises(coldq.InvalidInput, match="slot 1 has passed"):
        stream.reveal(1, np.zeros(10))
