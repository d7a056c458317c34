"""Each forecast beside a plain loop, a regression beside least squares, and what they keep."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.forecaster import Forecaster, Kept
from coldq.learners.recent import Recent

F = coldq.forecasts
SLOTS, N = 160, 2


def stream(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (slots, N, 3) and limits (slots, N) with a season of 7 slots."""
    rng = np.random.default_rng(seed)
    t = np.arange(SLOTS)[:, None]
    b = 5.0 + np.sin(2.0 * np.pi * t / 7.0) + 0.02 * t + 0.1 * rng.standard_normal((SLOTS, N))
    b[SLOTS // 2, 0] += 20.0
    return rng.standard_normal((SLOTS, N, 3)), b


def expected(
    one: Any, A: np.ndarray, b: np.ndarray, usual: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The slopes and limits (slots, N) that a forecast names at the end of every slot."""
    forecaster = Forecaster((F.Last(), one))
    kept, since = forecaster.first((), N), np.array(1.0)
    slopes, limits = np.empty(A.shape), np.empty(b.shape)
    for t in range(1, SLOTS + 1):
        data = np.concatenate([A[t - 1], b[t - 1][:, None]], axis=1).ravel()
        if t == 1:
            kept = kept._replace(past=np.zeros((forecaster.rows, data.size)))
        now = np.array(float(t))
        sizes = np.full((2, N), usual)
        kept, ahead, then = forecaster.remember(kept, now, since, data, b[t - 1], sizes)
        rows = ahead[forecaster.data_row[1]].reshape(N, 4)
        moved = b[t - 1] - then[1]
        slopes[t - 1], limits[t - 1] = rows[:, :-1], rows[:, -1] - moved
    return slopes, limits


@pytest.mark.parametrize("weight", [1.0, 0.5, 0.03])
def test_an_average_of_all_data(weight: float) -> None:
    A, b = stream()
    found = expected(F.MovingAverage(weight), A, b)
    mean = (A[0], b[0])
    for t in range(SLOTS):
        if t:
            mean = tuple(
                (1 - weight) * m + weight * new[t] for m, new in zip(mean, (A, b), strict=True)
            )
        for one, plain in zip(found, mean, strict=True):
            np.testing.assert_allclose(one[t], plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weight", [1.0, 0.3, 0.1])
def test_a_trend_of_all_data(weight: float) -> None:
    A, b = stream()
    found = expected(F.Trend(weight), A, b)
    for one, data in zip(found, (A, b), strict=True):
        rise = 0.0 * data[0]
        for t in range(SLOTS):
            if t:
                rise = (1 - weight) * rise + weight * (data[t] - data[t - 1])
            np.testing.assert_allclose(one[t], data[t] + rise, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("usual", [0.0, 0.2])
@pytest.mark.parametrize("weight", [0.5, 0.03])
def test_a_robust_average_of_limits(weight: float, usual: float) -> None:
    A, b = stream()
    slopes, limits = expected(F.Robust(weight), A, b, usual)
    assert np.array_equal(slopes, A)  # the last slot's
    for n in range(N):
        level = b[0, n]
        for t in range(SLOTS):
            if t:
                surprise = b[t, n] - level
                if usual:
                    surprise = min(max(surprise, -2.0 * usual), 2.0 * usual)
                level += max(weight, 1.0 / (t + 1)) * surprise
            assert limits[t, n] == pytest.approx(level, rel=1e-12)


@pytest.mark.parametrize("period", [2, 7, 63, 64, 65, 150])
def test_seasons_of_limits(period: int) -> None:
    A, b = stream()
    slopes, then = expected(F.Seasonal(period), A, b)
    _, change = expected(F.SeasonalChange(period), A, b)
    assert np.array_equal(slopes, A)
    for t in range(SLOTS):
        ago = t + 1 - period  # of the slot that is next
        level = b[ago] if ago >= 0 else b[t]
        moved = b[t] + b[ago] - b[ago - 1] if ago >= 1 else b[t]
        np.testing.assert_allclose(then[t], level, rtol=1e-12)
        np.testing.assert_allclose(change[t], moved, rtol=1e-12)


@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.95])
def test_a_regression_is_weighted_least_squares(forgetting: float) -> None:
    A, b = stream(1)
    periods = (7, 14)
    slopes, found = expected(F.Regression(periods, forgetting), A, b)
    assert np.array_equal(slopes, A)
    for n in range(N):
        x, fast, slow, trend, scale = b[:, n], b[0, n], b[0, n], 0.0, 0.0
        seen: list[tuple[np.ndarray, float]] = []
        terms, usual = np.zeros(7), 0.0
        for t in range(SLOTS):
            if t:
                step = x[t] - x[t - 1]
                if usual > 0.0:
                    seen.append((terms, step / usual))
                fast, slow = fast + 0.5 * (x[t] - fast), slow + 0.12 * (x[t] - slow)
                trend += 0.1 * (step - trend)
                scale += max(0.01, 1.0 / (t + 1)) * (abs(step) - scale)
            level = [x[t + 1 - P] if t + 1 >= P else x[t] for P in periods]
            change = [x[t + 1 - P] - x[t - P] if t >= P else 0.0 for P in periods]
            raw = np.array([fast - x[t], slow - x[t], trend, *(np.array(level) - x[t]), *change])
            usual = scale
            terms = raw / scale if scale > 0.0 else np.zeros(7)
            weights = np.sqrt(forgetting ** np.arange(len(seen))[::-1])
            # As if 10 observations of each term had said nothing, before all.
            prior = np.sqrt(forgetting ** len(seen) / 0.1) * np.eye(7)
            H = np.array([h for h, _ in seen]).reshape(-1, 7) * weights[:, None]
            y = np.array([v for _, v in seen]) * weights
            both = np.concatenate([prior, H]), np.concatenate([np.zeros(7), y])
            v = np.linalg.lstsq(*both, rcond=None)[0]
            assert found[t, n] == pytest.approx(x[t] + scale * (v @ terms), rel=1e-6, abs=1e-6)


def test_a_function_of_the_users_own_sees_the_last_limits_the_oldest_first() -> None:
    A, b = stream()
    seen: list[np.ndarray] = []

    def middle(limits: np.ndarray) -> np.ndarray:
        seen.append(np.array(limits))
        return np.median(limits, axis=0)

    slopes, found = expected(F.Own(middle, slots=70), A, b)
    assert np.array_equal(slopes, A)
    for t in range(SLOTS):
        assert np.array_equal(seen[t], b[max(0, t - 69) : t + 1])
        np.testing.assert_allclose(found[t], np.median(seen[t], axis=0), rtol=1e-12)


def test_a_function_may_be_named_as_it_is_and_what_it_returns_is_checked() -> None:
    X = coldq.Box(0.0, 1.0, dim=1)
    told = coldq.Feedback(coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-0.5]))
    for odd in (lambda limits: [1.0, 2.0], lambda limits: [np.nan], lambda limits: 1.0):
        learner = coldq.SelfTuning(X, 0.1, forecasts=[odd])
        with pytest.raises(coldq.InvalidInput, match="1 finite limits, one for each row"):
            learner.update(learner.init(1), told)
    with pytest.raises(coldq.InvalidInput, match="must be some of"):
        coldq.SelfTuning(X, 0.1, forecasts=["last"])
    with pytest.raises(coldq.InvalidInput, match="one Regression"):
        coldq.SelfTuning(X, 0.1, forecasts=[F.Regression((7,)), F.Regression((9,))])
    for period in (1, 100_001, 2.5):
        with pytest.raises(coldq.InvalidInput, match="period"):
            F.Seasonal(period)
    with pytest.raises(coldq.InvalidInput, match="forgetting"):
        F.Regression((7,), 0.0)
    with pytest.raises(coldq.InvalidInput, match="slots"):
        F.Own(np.mean, slots=0)


EVERY = (F.MovingAverage(0.5), F.Trend(0.3), F.Robust(0.1), F.Seasonal(5), F.SeasonalChange(70),
         F.Regression((5, 7)), F.Own(lambda limits: limits.mean(axis=0), 9))  # fmt: skip


def test_members_of_a_batch_in_slots_of_their_own_have_the_bits_of_one_alone() -> None:
    rng, learner = (
        np.random.default_rng(2),
        coldq.SelfTuning(coldq.Box(0.0, 10.0, dim=2), 0.05, forecasts=EVERY),
    )
    runs, slots = 3, 90
    tenants, alone = learner.init(2, batch=(runs,)), [learner.init(2) for _ in range(runs)]
    for t in range(slots):
        who = np.flatnonzero(rng.random(runs) < 0.8) if t else np.array([0, 2])
        if not who.size:
            continue
        A = rng.uniform(-1.0, -0.5, (who.size, 2, 2))
        b = -3.0 + np.sin(t) + 0.3 * rng.standard_normal((who.size, 2))
        prices = rng.uniform(0.5, 1.0, (who.size, 2))
        part = learner.update(
            tenants.take(who), coldq.Feedback(coldq.Linear(prices), coldq.Affine(A, b))
        )
        tenants = tenants.put(who, part)
        for k, i in enumerate(who):
            told = coldq.Feedback(coldq.Linear(prices[k]), coldq.Affine(A[k], b[k]))
            alone[i] = learner.update(alone[i], told)
    assert len(set(tenants.t.tolist())) > 1
    for i in range(runs):
        one, other = tenants.take(i).to_arrays(), alone[i].to_arrays()
        for name in one:
            assert one[name].tobytes() == other[name].tobytes(), name


def test_a_state_that_was_written_down_goes_on_as_before() -> None:
    rng = np.random.default_rng(3)
    learner = coldq.SelfTuning(coldq.Box(0.0, 10.0, dim=1), 0.05, forecasts=EVERY)
    state = restored = learner.init(1)
    for t in range(150):
        told = coldq.Feedback(
            coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-4.0 - np.sin(t) - rng.random()])
        )
        state, restored = learner.update(state, told), learner.update(restored, told)
        if t % 50 == 20:
            file = io.BytesIO()
            np.savez(file, **restored.to_arrays())
            file.seek(0)
            with np.load(file) as stored:
                restored = learner.from_arrays(dict(stored))
            assert isinstance(restored.recent, Recent)
        for name, array in state.to_arrays().items():
            assert restored.to_arrays()[name].tobytes() == array.tobytes(), name
    arrays = state.to_arrays()
    for name, odd in (("recent", np.zeros((1, 3))), ("terms", np.zeros((1, 2)))):
        with pytest.raises(coldq.InvalidInput, match=name):
            learner.from_arrays(arrays | {name: odd})


def size_of(state: Any) -> int:
    """Bytes of what forecasts keep and are judged by; the pool's points are not theirs."""
    names = (*Kept._fields, "predicted", "moments", "errors")
    return sum(np.array(getattr(state, name)).nbytes for name in names)


@pytest.mark.parametrize(
    ("forecasts", "most"), [(F.DEFAULT, 20 * 1024), (F.SMALL_MEMORY, 2 * 1024)]
)
def test_what_a_row_of_a_tenant_takes(forecasts: Any, most: int) -> None:
    learner, tenants = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=3), 0.01, forecasts=forecasts), 4
    for n in (1, 4):
        state = learner.init(n, batch=(tenants,))
        A, b = -np.ones((tenants, n, 3)), -np.ones((tenants, n))
        told = coldq.Feedback(coldq.Linear(np.ones((tenants, 3))), coldq.Affine(A, b))
        for _ in range(3):
            state = learner.update(state, told)
        assert size_of(state) <= most * n * tenants


def test_states_share_the_blocks_that_did_not_change() -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=1), 0.1, forecasts=[F.Seasonal(600)])
    state = learner.init(1)
    for t in range(200):
        told = coldq.Feedback(coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-0.5 - 0.001 * t]))
        before, state = state, learner.update(state, told)
        pairs = list(zip(before.recent.blocks, state.recent.blocks, strict=True))
        assert sum(one is not other for one, other in pairs) == 1
        assert all(not block.flags.writeable for block in state.recent.blocks)


@pytest.mark.parametrize("answer", [[1.0, 2.0], ["x"], [np.nan], [None], 1.0, [[1.0], [1.0, 2.0]]])
def test_what_no_limits_can_be_made_of_is_refused_with_a_sentence(answer: Any) -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=1), 0.1, forecasts=[lambda limits: answer])
    state = learner.init(1)
    told = coldq.Feedback(coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-0.5]))
    with pytest.raises(coldq.InvalidInput, match="forecast of your own"):
        learner.update(state, told)
    assert state.t == 1
