"""A safety margin tuned on a part of a problem: what is done by hand, to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array, real_array
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Constraint, Domain, Problem, require_problem
from coldq.learners.best_response import BestResponse
from coldq.learners.enforced_rows import slack_at
from coldq.learners.forecast_margins import rate_of
from coldq.simulation.loop import seed_tuple
from coldq.simulation.replay import replay

COST_TOLERANCE = 1e-9  # costs that differ by less than this share are equal but for rounding
SAFETY_MARGINS = (0.0, *(0.0025 * 1.25**k for k in range(0, 31, 3)))  # to 2.02
LARGE_SAFETY_MARGINS = tuple(0.0025 * 1.25**k for k in range(30, 49, 3))  # to 112
REFINED_STEPS, REFINEMENT_PASSES = 7, 2  # between two of a grid, and how often


class MarginScore(NamedTuple):
    """Cost and share of violated slots that a safety margin gives on a part of a problem."""

    safety_margin: float
    cost: float
    share: float
    violation: float


def tune_safety_margin(
    problem: Problem,
    rate: float,
    part: tuple[float, float] = (0.0, 1.0),
    *,
    seeds: Iterable[int] = (0,),
    safety_margins: Iterable[float] | None = None,
) -> MarginScore:
    """The cheapest safety margin of :class:`~coldq.BestResponse` that keeps a rate on some slots.

    `part` is the share of the slots at which it begins and ends: (0, 1/3) tunes on the first third,
    (1/3, 1) is the best in hindsight for the rest. Slot 1 is not judged: it is decided before
    anything is known, whatever the safety margin. By default `safety_margins` go up to 2, and
    up to 112 if none of those keeps the rate, finer where it is just kept, to about a hundredth of
    it. If none at all does, it is the one of least share.

    >>> import coldq
    >>> problem = coldq.problems.Autoscale(400)
    >>> tuned = coldq.tune_safety_margin(problem, 0.05, safety_margins=[0.2, 1.2, 2.4])
    >>> tuned.safety_margin
    1.2
    """
    limit, seeds = _limit(rate), seed_tuple(seeds)
    if safety_margins is not None:
        (tried,) = try_safety_margins(problem, [part], seeds, safety_margins)
        return choose_safety_margin(tried, rate)
    (tried,) = try_finely(problem, [part], seeds, [rate])
    if all(one.share > limit for one in tried):
        (more,) = try_finely(problem, [part], seeds, [rate], LARGE_SAFETY_MARGINS)
        tried += more
    return choose_safety_margin(tried, rate)


def choose_safety_margin(tried: Iterable[MarginScore], rate: float) -> MarginScore:
    """The cheapest that keeps a rate, the least of those that cost the same, or of least share."""
    limit, tried = _limit(rate), list(tried)
    kept = [one for one in tried if one.share <= limit]
    if not kept:
        return min(tried, key=lambda one: one.share)
    least = min(one.cost for one in kept)
    return min(one for one in kept if one.cost <= least + COST_TOLERANCE * abs(least))


def _limit(rate: Any) -> float:
    limit = rate_of(rate)
    if limit is None:
        raise InvalidInput("violation_rate must be a share such as 0.01, but is None")
    return limit


def try_safety_margins(
    problem: Problem,
    parts: Iterable[tuple[float, float]],
    seeds: Iterable[int],
    safety_margins: Iterable[float],
) -> list[list[MarginScore]]:
    """What each safety margin does on each part of a problem, all side by side in one run.

    A problem whose rows have demands that are not their limits says how a safety margin tightens
    them, by a `tighten` as :class:`~coldq.BestResponse` takes it.
    """
    require_problem(problem)
    if getattr(problem, "adaptive", False) or getattr(problem, "agents", None) is not None:
        raise InvalidInput(
            "a safety margin is tuned on a problem without agents that does not answer to decisions"
        )
    seeds, T, spans = seed_tuple(seeds), problem.horizon, []
    for part in parts:
        begin, end = ends = real_array("part", part, 0) if np.shape(part) == (2,) else (1.0, 0.0)
        if not 0.0 <= begin < end <= 1.0:
            raise InvalidInput(f"part must be two shares such as (0, 1/3), but is {part!r:.200}")
        begin, end = map(float, ends)
        first = min(max(round(begin * T), 1), T - 1)  # slot 1 is decided before anything is known
        spans.append((first, max(round(end * T), first + 1)))
    given = safety_margins if isinstance(safety_margins, np.ndarray) else list(safety_margins)
    h = real_array("safety_margins", given, 1)
    if h.ndim != 1 or not h.size:
        raise InvalidInput(f"safety_margins must be some numbers, but has shape {h.shape}")
    learner = BestResponse(problem.domain, h[:, None], tighten=getattr(problem, "tighten", None))
    state = learner.init(problem.n_constraints, batch=(len(h), len(seeds)))
    sums = np.zeros((len(spans), 3, *state.batch))
    last = max(end for _, end in spans)
    for t, revealed in replay(problem, seeds):
        g = revealed.constraint.value(state.x)
        bad = is_violated(revealed.constraint, g, state.x, problem.domain)
        now = revealed.loss.value(state.x), bad, np.maximum(g, 0.0).sum(axis=-1)
        for k, (begin, end) in enumerate(spans):
            if begin < t <= end:
                sums[k] += np.broadcast_arrays(*now)
        if t >= last:
            break
        state = learner.update(state, revealed)
    scores = []
    for (cost, count, total), (begin, end) in zip(sums.mean(axis=-1), spans, strict=True):
        slots = end - begin
        rows = zip(h, cost / slots, count / slots, total, strict=True)
        scores.append([MarginScore(*map(float, row)) for row in rows])
    return scores


def try_finely(
    problem: Problem,
    parts: Sequence[tuple[float, float]],
    seeds: tuple[int, ...],
    rates: Iterable[float],
    safety_margins: tuple[float, ...] = SAFETY_MARGINS,
) -> list[list[MarginScore]]:
    """What safety margins do on each part of a problem, finer where a rate is just kept."""
    rates, scores = list(rates), try_safety_margins(problem, parts, seeds, safety_margins)
    for _ in range(REFINEMENT_PASSES):
        grid, finer = [one.safety_margin for one in scores[0]], set[float]()
        for tried in scores:
            for rate in rates:
                at = grid.index(choose_safety_margin(tried, rate).safety_margin)
                if at > 0:
                    finer |= set(
                        np.linspace(grid[at - 1], grid[at], REFINED_STEPS + 1)[1:-1].tolist()
                    )
        if finer:
            more = try_safety_margins(problem, parts, seeds, sorted(finer))
            scores = [sorted(a + b) for a, b in zip(scores, more, strict=True)]
    return scores


def is_violated(constraint: Constraint, g: Array, x: Array, domain: Domain) -> np.ndarray:
    """Whether any row is violated, as learners count it."""
    over = g > slack_at(x, g, constraint.jacobian(x), domain.diameter)
    return np.asarray(over.any(axis=-1))
