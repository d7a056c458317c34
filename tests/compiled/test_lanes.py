"""Numbers side by side in the processor's lanes have the bits that they have alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coldq.compiled import machine
from tests.compiled import small

RNG = np.random.default_rng(1)


def test_a_lane_has_the_bits_of_the_number_alone() -> None:
    for _ in range(300):
        a, b, c = RNG.normal(size=(3, 8)) * 10.0 ** RNG.integers(-3, 3, (3, 8))
        special = RNG.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 1e308], (3, 8))
        a, b, c = np.where(RNG.random((3, 8)) < 0.1, special, (a, b, c))
        side, alone = np.empty((2, 8))
        small.beside()(a, b, c, side, alone)
        np.testing.assert_array_equal(np.isnan(side), np.isnan(alone))
        known = ~np.isnan(side)
        assert side[known].tobytes() == alone[known].tobytes()


def test_a_product_is_fused_where_the_processor_does_so() -> None:
    a = 1.0 + 2.0**-30
    inputs = [np.full(8, v) for v in (a, a, -1.0)]
    side, alone = np.empty((2, 8))
    small.beside()(*inputs, side, alone)
    exact = Fraction(a) * Fraction(a) - 1
    inside = float(exact) if machine.fuses() else a * a - 1.0
    rest = Fraction(a) - Fraction(a) * Fraction(inside)
    steep = float(rest) if machine.fuses() else a - a * inside
    assert side.tolist() == [0.25 * steep + a] * 8
    assert alone.tolist() == side.tolist()


def test_four_parts_take_turns_and_are_joined_by_halves() -> None:
    for count in (4, 8, 12, 20):
        terms = RNG.normal(size=count) * 10.0 ** RNG.integers(-8, 8, count)
        turned, across = np.empty(()), np.empty(())
        small.in_four_parts()(terms, turned, across)
        parts = [0.0] * 4
        for i, term in enumerate(terms.tolist()):
            parts[i % 4] += term
        assert turned == across == (parts[0] + parts[2]) + (parts[1] + parts[3])


def test_lines_are_gathered_into_lanes_and_scattered_again() -> None:
    lines, lanes, back = RNG.normal(size=(8, 5)), np.empty((5, 8)), np.empty((8, 5))
    assert small.there_and_back()(lines, lanes, back) == 9.0  # eight lanes, and one
    np.testing.assert_array_equal(lanes, lines.T)
    np.testing.assert_array_equal(back, lines)


def test_squares_of_numbers_change_places_with_lanes() -> None:
    lines, lanes = RNG.normal(size=(8, 14)), np.empty((14, 8))
    back, alone = np.empty((2, 8, 14))
    small.in_squares()(lines, lanes, back, alone)
    np.testing.assert_array_equal(lanes, lines.T)
    np.testing.assert_array_equal(back, lines)
    np.testing.assert_array_equal(alone, lines)


def test_numbers_in_threes_are_taken_apart_and_put_together() -> None:
    numbers, lanes, alone = RNG.normal(size=24), np.empty(24), np.empty(24)
    small.in_thirds()(numbers, lanes, alone)
    first, second, third = numbers.reshape(-1, 3).T
    np.testing.assert_array_equal(lanes, np.stack([2.0 * first, third, second], axis=1).ravel())
    np.testing.assert_array_equal(alone, lanes)


@pytest.mark.parametrize(
    ("processor", "registers"),
    [
        (("x86_64-unknown-linux-gnu", "generic", ""), (16, 2)),
        (("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma"), (16, 4)),
        (("x86_64-unknown-linux-gnu", "icelake-server", "+avx,+avx512f,+avx512vl"), (32, 8)),
        (("x86_64-unknown-linux-gnu", "arrowlake", "+avx,-avx512f,-avx512vl"), (16, 4)),
        (("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon"), (32, 2)),
        (("arm64-apple-darwin", "apple-m1", ""), (32, 2)),
    ],
)
def test_what_registers_hold_is_known_of_every_processor(processor, registers, monkeypatch) -> None:
    monkeypatch.setattr(machine, "processor", lambda: processor)
    monkeypatch.setattr(machine, "is_arm", machine.is_arm.__wrapped__)
    assert machine.registers.__wrapped__() == registers
