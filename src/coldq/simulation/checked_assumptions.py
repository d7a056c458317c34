"""The assumptions of the theorems, each held against what a run and its problem show."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import Array, real_array
from coldq.base.errors import Error, InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.simulation.comparators import Comparator, dynamic_comparator, static_comparator
from coldq.simulation.estimated_constants import POINT_PAIRS
from coldq.simulation.metrics import constraint_variation
from coldq.simulation.trace import Trace
from coldq.theory.assumptions import (
    FAILS,
    HOLDS,
    ROUNDING,
    SPOT_CHECKED,
    UNKNOWN,
    Assumption,
    in_words,
)


def declared_constants(problem: Problem) -> Any:
    """The problem's own constants, if it has any."""
    try:
        return getattr(problem, "constants", None)
    except NotImplementedError:
        return None


def comparators_of(
    trace: Trace,
) -> tuple[Comparator | None, Comparator | None, tuple[Assumption, ...]]:
    """Both comparators, None where they cannot be found, and what they say on feasibility."""
    best: list[Comparator | None] = []
    assumptions: list[Assumption] = []
    for name, solve in (
        ("a feasible decision in every slot", dynamic_comparator),
        ("a feasible decision common to all slots", static_comparator),
    ):
        try:
            comparator = solve(trace.problem, trace.seeds, trace.decisions)
        except Error as error:
            best.append(None)
            assumptions.append(Assumption(name, UNKNOWN, f"not found, because {error}"))
            continue
        best.append(comparator)
        lacking = int((~comparator.feasible).any(axis=1).sum())
        verdict, words = HOLDS, "one was found"
        if lacking:
            verdict = UNKNOWN if assumptions else FAILS
            words = (
                f"{lacking} of {len(trace.seeds)} seeds have none, so that their regret is "
                f"undefined: {comparator.lacking}"
            )
        assumptions.append(Assumption(name, verdict, words))
    return best[0], best[1], tuple(assumptions)


def variation_of(trace: Trace) -> tuple[Array, Assumption]:
    """The constraint's variation V of each seed, NaN where it is not known."""
    name = "the constraint's variation"
    try:
        variation = constraint_variation(trace.problem, trace.seeds, trace.decisions)
    except Error as error:
        words = f"not found, because {error}; nor are the bounds that need it"
        return np.full(len(trace.seeds), np.nan), Assumption(name, UNKNOWN, words)
    source = "exact" if variation.exact else "an upper bound"
    return variation.total, Assumption(name, HOLDS, f"V = {in_words(variation.total)}, {source}")


def check_bound(
    name: str,
    given: Any,
    closed: Array | None,
    exact: bool,
    seen: Array,
    constants: Any,
    whole: bool,
) -> tuple[Array, Assumption]:
    """D or G: the user's, else in closed form, else the problem's; and whether it was kept."""
    title = "|grad f_t| <= D" if name == "gradient_bound" else "|g_t| <= G"
    if given is not None:
        value, source = real_array(name, given, 0), "as given"
        if value.shape not in ((), seen.shape):
            raise InvalidInput(
                f"{name} must be one number, or one for each of the {len(seen)} seeds, but has "
                f"shape {value.shape}"
            )
        value = value + np.zeros(seen.shape)
    elif closed is not None:
        value = closed
        source = "over the whole domain, " + ("exact" if exact else "at least the largest")
    elif constants is not None:
        value, source = np.full(seen.shape, float(getattr(constants, name))), "problem.constants"
    elif not whole:
        words = f"it was revealed only at the decisions played: pass {name}="
        return np.full(seen.shape, np.nan), Assumption(title, UNKNOWN, words)
    else:
        raise InvalidInput(
            f"the revealed functions have no closed form of {name}, and the problem has no "
            f"constants: pass {name}="
        )
    words = f"{title[-1]} = {in_words(value)}, {source}"
    if not np.isfinite(value).all():
        return value, Assumption(title, FAILS, words)
    if closed is not None and (closed <= value * (1.0 + ROUNDING)).all():
        return value, Assumption(title, HOLDS, words)
    least = closed if closed is not None and exact else seen
    if (least > value * (1.0 + ROUNDING)).any():
        return value, Assumption(title, FAILS, f"{words}, but {in_words(least)} was revealed")
    return value, Assumption(title, SPOT_CHECKED, f"{words}; seen: {in_words(seen)}")


def check_domain(domain: Domain) -> Assumption:
    """Whether the domain is bounded."""
    R = float(domain.diameter)
    return Assumption("bounded domain", HOLDS if np.isfinite(R) else FAILS, f"R = {R:.4g}")


def check_convexity(nonconvexity: Array, mu: float, spots: int) -> Assumption:
    """Whether the functions were above their tangents wherever that was looked at."""
    name = "convex losses and constraints" + (f", mu = {mu:.4g}" if mu > 0.0 else "")
    if np.isnan(nonconvexity).any():
        return Assumption(name, UNKNOWN, "they were revealed only at the decisions played")
    if (nonconvexity > ROUNDING).any():
        return Assumption(name, FAILS, "a function lies below its tangent")
    return Assumption(
        name,
        SPOT_CHECKED,
        f"above their tangents at {POINT_PAIRS} pairs of points in {spots} slots",
    )


def check_delay(delay: int) -> Assumption:
    """Whether feedback came after every slot."""
    name = "feedback after every slot"
    if delay:
        return Assumption(name, FAILS, f"it was {delay} slots late, which the theorems exclude")
    return Assumption(name, HOLDS, "none was late")


def check_horizon(horizon: int) -> tuple[Assumption, ...]:
    """Whether there are two slots; nothing is said where there are."""
    if horizon > 1:
        return ()
    return (Assumption("at least two slots", FAILS, "the run has one, and T is at least 2"),)
