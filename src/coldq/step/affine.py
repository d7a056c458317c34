"""Affine rows: the compiled dual Newton method, and what happens if it ever fails.

It solves rows on a box. Hard rows of a polyhedral domain join those of the constraint.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy import empty, maximum

from coldq._values import Array
from coldq.compiled.calls import STACK
from coldq.constraints import Affine
from coldq.domains import Box, Domain
from coldq.errors import Inexact, Infeasible, InvalidInput, StepFailed, name_indices, warn
from coldq.step.answer import Step
from coldq.step.kernels import affine_step, scratch_size
from coldq.step.threads import NONE, SMALL_BLOCK, run_batch, scratch

TOLERANCE = 1e-9  # the relative KKT residual above which no answer passes silently
ROUGH = 1e-3  # the residual up to which multipliers are worth starting from
ACCEPTED = 1e-6  # and that above which none passes at all
CORES = (1, 1, 0, 1, 1, 1, 2, 1, 1, 1, 0)
HUGE = 1e8  # a multiplier of hard rows that tie: no price, and what is relative to it says little
# How many systems the kernel may solve before others take over. Where hard rows of a domain hold
# blocks of coordinates (simplices beside prices of many magnitudes), one step length for all rows
# creeps; on a box every answer comes from the kernel that can.
PATIENT, HASTY = np.array(np.inf), np.array(24.0)
HALF = np.array(0.5)  # alpha of a projection
FAR = 1e15  # times its size from a domain a point's last digit is the domain: its direction is left
HINGE = 0.0  # the floor that needs no array
MANY_ROWS = 72  # above, passes on BLAS over few rows at a time beat the compiled loops
SOME_FACES = 80  # rows and coordinates: above, an interior-point method comes before faces
MUCH_DATA = 300_000  # N p above which they do so from SOME_ROWS rows on
SOME_ROWS = 16
new_tuple = tuple.__new__  # a named tuple without the call of its own constructor


@cache
def _zeros(n: int) -> Array:
    zeros = np.zeros(n)
    zeros.flags.writeable = False
    return zeros


def is_large(n: int, p: int) -> bool:
    """Whether n rows in p coordinates go to :mod:`coldq.step.large`, not to the kernel."""
    return n > MANY_ROWS or (n > SOME_ROWS and n * p > MUCH_DATA)


# By the shape of A, what a single step takes besides its problem: the kernel, zeros and the size of
# its memory.
_singles: dict[tuple[int, ...], tuple[Any, Array, int]] = {}


def prepare_single(shape: tuple[int, ...]) -> bool:
    """Have ready what a single step on A of this shape takes; False if it should go as a batch."""
    size = scratch_size(*shape)
    if is_large(*shape) or 8 * size > SMALL_BLOCK:
        return False
    _singles[shape] = affine_step(), _zeros(shape[0]), size
    return True


def solve_affine(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Affine,
    domain: Box,
    rounds: Array = PATIENT,
) -> Step:
    """The answers of a batch; raises if any instance has none."""
    A, b = constraint.A, constraint.b
    answer = None
    if center.ndim == 1:
        # A single decision costs mostly Python, so there is little of it here. The kernel itself
        # refuses arrays that do not belong together.
        try:
            kernel, zeros, size = _singles[A.shape]
        except KeyError:
            if A.ndim != 2:
                raise misfit(center, gradient, weights, constraint, domain) from None
            if prepare_single(A.shape):
                return solve_affine(
                    center, gradient, alpha, weights, floor, constraint, domain, rounds
                )
        else:
            x, multipliers = empty(center.shape), empty(b.shape)
            try:
                residual = kernel(
                    center, gradient, alpha, zeros if floor is HINGE else floor, weights, zeros,
                    A, b, domain.lower, domain.upper, rounds,
                    NONE if size <= STACK else scratch(size), x, multipliers, None,
                )  # fmt: skip
            except TypeError:
                raise misfit(center, gradient, weights, constraint, domain) from None
            if residual <= TOLERANCE:
                return new_tuple(Step, (x, multipliers, residual))
            answer = new_tuple(Step, (x, multipliers, np.asarray(residual)))
    if A.size > MANY_ROWS and is_large(*A.shape[-2:]):
        from coldq.step.large import solve_large

        return solve_large(center, gradient, alpha, weights, floor, constraint, domain)
    zeros = _zeros(A.shape[-2])
    floor = zeros if floor is HINGE else floor
    problem = (
        center, gradient, alpha, floor, weights, zeros, A, b, domain.lower, domain.upper,
    )  # fmt: skip
    try:
        answer = answer or run_affine(problem, rounds)
    except InvalidInput:
        raise
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    if answer.residual.size and not maximum.reduce(answer.residual, None) <= TOLERANCE:  # or NaN
        answer, clash = rescue(problem, answer)
        raise_if_failed(answer, clash)
    return answer


def solve_beside(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Affine,
    domain: Domain,
) -> Step:
    """The same on a polyhedral domain: its own rows come after the constraint's, with no price."""
    own = domain.rows
    n, p = constraint.A.shape[-2:]
    if own.floor.size == 0:
        return solve_affine(center, gradient, alpha, weights, floor, constraint, domain.box)
    if p != domain.dim or weights.shape[-1:] != (n,):
        raise misfit(center, gradient, weights, constraint, domain)
    priced = floor is HINGE  # by weights, which bound the multipliers
    if not priced:
        floor = append(floor, own.floor, 1)
    elif n in own.hinges:
        floor = own.hinges[n]
    else:
        floor = own.hinges[n] = append(_zeros(n), own.floor, 1)
    try:
        weights = append(weights, own.weights, 1)
        A, b = append(constraint.A, own.A, 2), append(constraint.b, own.b, 1)
        rows, box = Affine.unchecked(A, b), domain.box
        step = solve_affine(center, gradient, alpha, weights, floor, rows, box, HASTY)
        if not priced and np.abs(step.multipliers[..., :n]).max(initial=0.0) > HUGE:
            zeros = _zeros(weights.shape[-1])
            problem = (center, gradient, alpha, floor, weights, zeros, A, b, box.lower, box.upper)
            step = explained(problem, step, n)
    except StepFailed as failed:
        if failed.step is not None:
            failed.step = failed.step._replace(multipliers=failed.step.multipliers[..., :n])
        raise
    except InvalidInput:
        raise
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    return new_tuple(Step, (step[0], step[1][..., :n], step[2]))


def explained(problem: tuple[Any, ...], answer: Step, n: int) -> Step:
    """The same x with smaller multipliers of the first n rows, where they are huge.

    Where hard rows tie with those of the domain no multiplier is too large to be optimal, but a
    huge one is no price for anybody. Those of independent rows are no larger than they must be.
    """
    from coldq.step.extended import solve_extended

    x, multipliers, residual = (np.array(a) for a in answer)
    huge = np.abs(multipliers[..., :n]).max(axis=-1) > HUGE
    for where, one in members(problem, CORES, huge):
        again = solve_extended(one)
        smaller = np.abs(again.multipliers[:n]).max() < np.abs(multipliers[where][:n]).max()
        if again.residual <= TOLERANCE and smaller:
            x[where], multipliers[where], residual[where] = again[:3]
    return Step(x, multipliers, residual if residual.ndim else residual[()])


def members(
    problem: tuple[Any, ...], cores: tuple[int, ...], wanted: np.ndarray
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The wanted instances of a batch, each with its place; `cores` as the kernel's."""
    wanted = np.asarray(wanted)
    spread = [
        np.broadcast_to(a, wanted.shape + np.shape(a)[np.ndim(a) - c :])
        for a, c in zip(problem, cores[: len(problem)], strict=True)
    ]
    for where in np.ndindex(*wanted.shape):
        if wanted[where]:
            yield where, tuple(np.array(a[where]) for a in spread)


def append(first: Array, second: Array, core: int) -> Array:
    """The rows of two arrays, one after the other; leading axes broadcast.

    Where they do, ``np.concatenate`` would choose an order in memory that the kernel cannot read.
    """
    if first.ndim == second.ndim == core:
        return np.concatenate((first, second))
    batch = np.broadcast_shapes(first.shape[:-core], second.shape[:-core])
    n = first.shape[-core]
    out = np.empty((*batch, n + second.shape[-core], *first.shape[first.ndim - core + 1 :]))
    upper, lower = (out[..., :n], out[..., n:]) if core == 1 else (out[..., :n, :], out[..., n:, :])
    upper[...], lower[...] = first, second
    return out


def nearest(x: Array, domain: Domain) -> Array:
    """The nearest point of a polyhedral domain: a step without a gradient."""
    own, limit = domain.rows, FAR * domain.size
    if domain.batch or not (x.size and -limit <= x.min() and x.max() <= limit):
        x = np.broadcast_to(x, (*np.broadcast_shapes(x.shape[:-1], domain.batch), domain.dim))
        with np.errstate(invalid="ignore"):  # infinity over infinity: refused below
            x = x / np.maximum(np.abs(x).max(axis=-1, keepdims=True) / limit[..., None], 1.0)
    rows = Affine.unchecked(own.A, own.b)
    return solve_affine(x, _zeros(domain.dim), HALF, own.weights, own.floor, rows, domain.box).x


def misfit(
    center: Array, gradient: Array, weights: Array, constraint: Any, domain: Any
) -> InvalidInput:
    """The error for arrays that do not belong together, with the shapes of all."""
    return InvalidInput(
        f"decisions of shape {center.shape} ({center.dtype}), gradients {gradient.shape}, weights "
        f"{weights.shape}, a {type(constraint).__name__} of {constraint.n_constraints} rows in "
        f"{constraint.dim} coordinates with leading axes {constraint.batch}, and a domain of "
        f"{domain.dim} coordinates with leading axes {domain.batch} do not fit together: was the "
        "state made by another learner, or changed by hand?"
    )


def run_affine(problem: tuple[Any, ...], rounds: Array = PATIENT) -> Step:
    """The kernel alone: an answer whose residual may be large, infinite (hard rows without a
    common point) or NaN. `problem` holds the kernel's arguments up to the bounds of the box."""
    n, p = problem[6].shape[-2:]
    cores, size = ((p,), (n,), ()), scratch_size(n, p)
    return new_tuple(Step, run_batch(affine_step(), (*problem, rounds), CORES, cores, size))


def rescue(problem: tuple[Any, ...], answer: Step) -> tuple[Step, np.ndarray]:
    """Solve again what the kernel did not; also, where hard rows have no common point."""
    from coldq.step.extended import solve_extended

    x, multipliers, residual = (np.array(a) for a in answer)
    clash = np.zeros(residual.shape, bool)
    for where, one in members(problem, CORES, ~(residual <= TOLERANCE)):
        start = multipliers[where] if residual[where] <= ROUGH else guessed(one)
        again = solve_extended(one, start)
        clash[where] = again.clash
        if again.residual < residual[where] or np.isnan(residual[where]):
            x[where], multipliers[where], residual[where] = again[:3]
    return Step(x, multipliers, residual), clash


def guessed(one: Any) -> Array | None:
    """Multipliers to start from, of an instance with many rows and coordinates.

    Those that are far from right are a worse start than none. From none the number of faces on the
    way, and the cost of each, grow with the rows and coordinates; an interior-point method's steps
    do not grow in number.
    """
    center, gradient, alpha, floor, weights, soft, A, b, lower, upper = one
    norms = np.square(A).sum(axis=1)
    if sum(A.shape) <= SOME_FACES or soft.any() or not norms.all():
        return None
    from coldq.step.interior_point import from_inside
    from coldq.step.large import Problem

    half = 0.5 / alpha
    y, found = center - gradient * half, None
    problem = Problem(y, A, b, floor * half, weights * half, lower, upper)
    with np.errstate(all="ignore"):
        for count, mu in enumerate(from_inside(problem, norms)):
            found = mu / half
            if count == 1:  # which multipliers are at a bound is mostly clear then
                break
    return found


def raise_if_failed(answer: Step, clash: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Raise an error that names the instances without an answer and carries the others.

    Where there are only answers beyond the tolerance that are still accepted, it is one warning.
    """
    residual = np.asarray(answer.residual)
    if clash.any():
        words, indices = name_indices(clash)
        message = f"the hard rows have no common point in the domain{words}"
        raise Infeasible(message, indices, answer)
    if np.isnan(residual).any():
        words, _ = name_indices(np.isnan(residual))
        raise InvalidInput(
            "center, gradient, alpha, weights and the constraint must be finite, but the step "
            f"came out as NaN{words}"
        )
    most = max(tolerance, ACCEPTED)
    bad = residual > most
    if bad.any():
        words, indices = name_indices(bad)
        raise StepFailed(
            f"no solver reached a relative KKT residual of {most:g}{words}; "
            f"the largest is {residual[bad].max():.3g}",
            indices,
            answer,
        )
    inexact = residual > tolerance
    if inexact.any():
        words, _ = name_indices(inexact)
        warn(
            f"no solver reached a relative KKT residual of {tolerance:g}{words}: the best answers "
            f"are taken, whose largest is {residual.max():.3g}",
            Inexact,
        )
