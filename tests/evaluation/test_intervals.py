"""Means with their intervals, as they are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldq.evaluation.intervals import (
    MIN_TESTED_SLOTS,
    block_interval,
    block_means,
    brief,
    holm,
    interval,
    p_value,
    with_interval,
)


@pytest.mark.parametrize(
    ("mean", "spread", "shown"),
    [
        (940.45, 99.7, "940.45 ± 100"),  # and not 1e+02
        (99999.7, 0.0, "100,000 ± 0"),
        (5000.21, 0.3, "5,000.2 ± 0.3"),  # little is not nothing
        (1234567.4, 4321.0, "1,234,567 ± 4,321"),
        (2e-14, 3.12e-15, "2e-14 ± 3.1e-15"),
        (0.0, 0.0, "0 ± 0"),
    ],
)
def test_a_mean_has_five_digits_and_its_interval_two(mean, spread, shown) -> None:
    off = spread / 12.706204736  # Student's t for two samples
    assert with_interval(np.array([mean - off, mean + off])) == shown
    assert with_interval(np.array([mean])) == shown.partition(" ")[0]


def test_large_numbers_are_written_out() -> None:
    shown = [brief(x) for x in (1234567.8, -1e8, 1e13)]
    assert shown == ["1,234,568", "-100,000,000", "1e+13"]


def test_the_block_interval_is_wider_where_slots_that_follow_each_other_are_alike() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(4800)
    apart = block_interval(noise)
    width = apart[2] - apart[1]
    assert width == pytest.approx(2 * 1.96 / np.sqrt(4800), rel=0.15)  # as if independent
    alike = block_interval(np.repeat(noise[::12], 12))
    assert (alike[2] - alike[1]) > 2.5 * width  # about sqrt(12) times as wide
    assert block_interval(noise) == apart


@pytest.mark.parametrize("slots", [3, 60, 224, 1920])
def test_slots_at_the_ends_count_in_an_interval_as_much_as_any(slots) -> None:
    late = np.zeros(slots)
    late[-slots // 20 :] = 1.0
    assert block_means(late).mean() == pytest.approx(late.mean(), rel=0.05)
    mean, low, high = block_interval(late)
    assert low <= mean <= high
    assert block_interval(late[::-1]) == pytest.approx((mean, low, high), abs=0.02)


def test_several_seeds_have_an_interval_over_them_and_one_over_its_blocks() -> None:
    series = np.random.default_rng(0).standard_normal((3, 200)) + np.array([[1.0], [2.0], [3.0]])
    means = series.mean(axis=1)
    half = 4.302653 * means.std(ddof=1) / np.sqrt(3)  # Student's t with two degrees of freedom
    expected = (means.mean(), means.mean() - half, means.mean() + half)
    assert interval(series) == pytest.approx(expected, rel=1e-6)
    assert interval(series[:1]) == block_interval(series[0])
    assert np.isnan(interval(np.ones((1, 1)))[1:]).all()


def test_p_values_over_seeds_are_those_of_student() -> None:
    from scipy.stats import ttest_1samp

    series = np.random.default_rng(1).standard_normal((6, 40)) + 0.2
    assert p_value(series) == pytest.approx(ttest_1samp(series.mean(axis=1), 0.0).pvalue)
    assert p_value(np.zeros((3, 9))) == 1.0
    assert p_value(np.array([[1.0, -1.0], [2.0, -2.0]])) == 1.0  # no difference in any seed
    assert p_value(np.ones((3, 9))) == 0.0  # the same in every seed


@given(st.lists(st.floats(0.0, 1.0), max_size=12), st.floats(0.001, 0.5))
def test_holm_rejects_what_its_steps_reject(p, level) -> None:
    rejected = set()
    for step, k in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[k] * (len(p) - step) > level:
            break
        rejected.add(k)
    assert {k for k, value in enumerate(holm(p)) if value <= level} == rejected


def test_p_values_of_noise_that_follows_itself_are_seldom_small() -> None:
    rng = np.random.default_rng(0)
    small = 0
    for _ in range(100):
        series, noise = np.zeros(960), rng.standard_normal(960)
        for t in range(1, 960):
            series[t] = 0.7 * series[t - 1] + noise[t]
        small += p_value(series[None]) < 0.05
    assert small <= 15  # twenty blocks: somewhat more than five; without blocks it is about fifty
    assert p_value(series[None] + 1.0) < 0.01


def test_too_few_slots_of_one_seed_tell_nothing_from_chance() -> None:
    shift = np.random.default_rng(0).standard_normal((1, MIN_TESTED_SLOTS)) + 9.0
    assert p_value(shift) < 0.01
    for slots in (1, 2, 5, 7, 100, MIN_TESTED_SLOTS - 1):
        assert p_value(shift[:, :slots]) == 1.0
