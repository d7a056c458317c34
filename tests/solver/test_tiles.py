"""Matrices in tiles of the processor's lanes, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from coldq.compiled import batch_kernel, vector
from coldq.compiled.calls import words
from coldq.solver.kernels.tiles import (
    add_tile,
    add_two_tiles,
    against,
    combine,
    multiply,
    padded,
    solve_again,
    solve_tiles,
)

RNG = np.random.default_rng(1)


@batch_kernel("(w,h),(m)->(h,h)")
def product(sizes, at):
    multiply(at[0], at[2], sizes[1], sizes[0], sizes[2])
    return 0.0


@batch_kernel("(h,h),(m),(k),(h)->(h),(h),(h,h)")
def solution(sizes, at):
    """The solution over the rows in the third operand, and that of the fourth as a right side."""
    h, m, k = sizes[0], sizes[1], sizes[2]
    order, right = words(at[2], k), vector(at[1], m)
    solve_tiles(at[0], at[6], h, order, k, m, right, at[4])
    solve_again(at[6], h, k, at[3], at[5])
    return 0.0


@batch_kernel("(n,h),(n),(h),(m)->(h),(n)")
def both_ways(sizes, at):
    n, h, m = sizes[0], sizes[1], sizes[2]
    combine(at[0], h, m, n, at[1], at[4])
    against(at[0], h, n, at[2], at[5])
    return 0.0


@batch_kernel("(w,h)->(m,h),(m,h)")
def tiles_by_one_and_two(sizes, at):
    w, h = sizes[0], sizes[1]
    add_tile(at[1], h, at[0], at[0], w, True)
    add_tile(at[1] + 64, h, at[0], at[0] + 64, w, True)
    add_two_tiles(at[2], h, at[0], at[0], w, True)
    return 0.0


def test_how_many_go_side_by_side_changes_no_bit() -> None:
    B = RNG.normal(size=(7, 16))
    one, two = np.ones((2, 4, 16))
    tiles_by_one_and_two()(B, one, two)
    assert one.tobytes() == two.tobytes()
    np.testing.assert_allclose(one, 1.0 - B[:, :4].T @ B, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("m", [1, 3, 4, 5, 8, 11, 19, 40])
def test_a_product_is_that_of_the_columns(m: int) -> None:
    B, H = np.full((7, padded(m)), 3.0), np.full((padded(m), padded(m)), np.nan)
    B[:, :m] = RNG.normal(size=(7, m))
    product()(B, np.empty(m), H)
    np.testing.assert_allclose(
        np.triu(H[:m, :m]), np.triu(B[:, :m].T @ B[:, :m]), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("m", "k"), [(1, 1), (3, 2), (4, 4), (7, 7), (8, 5), (19, 19), (40, 33), (110, 110)]
)
def test_systems_over_some_rows_are_solved_and_so_is_another_right_side(m: int, k: int) -> None:
    h = padded(m)
    H, F = np.full((h, h), np.nan), RNG.normal(size=(m, m + 2))  # beyond the rows is anything
    H[:m, :m] = whole = F @ F.T
    H[np.tril_indices(h, -1)] = np.nan  # nor is what is below the diagonal asked for
    right, order = RNG.normal(size=m), np.sort(RNG.permutation(m)[:k])
    more, first, second, L = np.zeros(h), np.empty(h), np.empty(h), np.full((h, h), np.nan)
    more[:k] = other = RNG.normal(size=k)
    solution()(H, right, order.view(np.float64), more, first, second, L)
    part = whole[np.ix_(order, order)]
    np.testing.assert_allclose(part @ first[:k], right[order], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(part @ second[:k], other, rtol=1e-8, atol=1e-8)


LINES = [(1, 1), (7, 7), (8, 8), (13, 13), (16, 9), (24, 24), (24, 5), (261, 261), (280, 270)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize(("h", "m"), LINES)
def test_lines_are_added_up_and_multiplied_as_a_matrix(n: int, h: int, m: int) -> None:
    A, share, given = RNG.normal(size=(n, h)), RNG.normal(size=n), RNG.normal(size=h)
    added, products = np.full(h, np.nan), np.full(n, np.nan)
    both_ways()(A, share, given, np.empty(m), added, products)
    np.testing.assert_allclose(added[:m], share @ A[:, :m], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(products, A @ given, rtol=1e-12, atol=1e-12)
