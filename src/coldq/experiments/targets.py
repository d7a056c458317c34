"""What a violation rate costs: learners that keep one, what engineers build, and COLDQ.

Each learner plays a whole problem and is scored on its last slots. Intervals are those of a
circular block bootstrap over the scored slots, because slots that follow each other are alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coldq._values import Array, whole_number
from coldq.errors import InvalidInput, WeakPrice
from coldq.experiments.named import problem_of, told_apart
from coldq.experiments.rivals import Choice, Tuned, tune
from coldq.headroom import choose_headroom, is_violated, try_finely
from coldq.learners import COLDQ, RECOO, BestResponse, SafetyMargin, SelfTuning
from coldq.learners.foresight import rate_of
from coldq.protocols import Learner, Problem
from coldq.simulate import replay, seed_tuple, simulate

PROBLEMS = ("autoscale", "dispatch", "jobs", "time-varying")
OURS = "SelfTuning"
SCORED_FROM = 1.0 / 3.0
BLOCK, DRAWS = 48, 2000  # slots of a block, four hours of five minutes, and samples
MOST_BLOCKS = 1000  # of a run: samples of more would not fit into memory
PARTS = 9  # of a measurement, each told when it is done
RATES = (0.1, 0.05, 0.02, 0.01, 0.005)  # of the curves in the picture


@dataclass(frozen=True, eq=False)
class Score:
    """One learner on the scored slots: means a slot, each with its 95% interval."""

    name: str
    cost: tuple[float, float, float]
    share: tuple[float, float, float]
    violation: float
    reduced: float
    cost_series: Array
    share_series: Array


@dataclass(frozen=True, eq=False)
class Rivalry:
    """A rival tuned on the slots before, and with its level chosen at SelfTuning's share."""

    name: str
    before: Score
    at_share: Score


@dataclass(frozen=True, eq=False)
class Target:
    """All scores of one problem at one rate, and points of cost against share for each curve.

    The slots from `begin` on are scored. Rivals play the first seed alone, because of each hundreds
    of choices are tried; `met` is SelfTuning on that one. `best` is the cheapest of all rivals,
    headroom among them, with the parameters that hindsight chooses for a share not above that of
    SelfTuning. `saved` is how much cheaper SelfTuning is, as a share of that cost, with its paired
    interval. `kept` has SelfTuning at every rate that was played.
    """

    key: str
    rate: float
    problem: Problem
    seeds: tuple[int, ...]
    begin: int
    scores: tuple[Score, ...]
    met: Score
    rivals: tuple[Rivalry, ...]
    best: Score
    saved: tuple[float, float, float]
    curves: Mapping[str, tuple[tuple[float, float], ...]]
    kept: Mapping[float, Score]

    @property
    def others(self) -> str:
        """What share SelfTuning had when told other rates, in words."""
        some = (
            f"{100 * one.share[0]:.2f}% for {100 * rate:g}%"
            for rate, one in self.kept.items()
            if rate != self.rate
        )
        return ", ".join(some) or "not been told any"

    @property
    def verdict(self) -> str:
        """What SelfTuning saves against the best rival, in words; negative is dearer."""
        saved, low, high = (100 * value for value in self.saved)
        kept = self.best.share[0] <= max(self.met.share[0], 1e-9)
        seed = f", with seed {self.seeds[0]}" if self.seeds[1:] else ""
        which = "the best rival at its own share" if kept else "the rival nearest to its own share"
        return (
            f"SelfTuning saves {saved:.2f}% [{low:.2f}, {high:.2f}] against {which} of violated "
            f"slots: {self.best.name}, {100 * self.best.share[0]:.2f}%{seed}."
        )

    @property
    def title(self) -> str:
        """The problem's name."""
        return getattr(self.problem, "title", type(self.problem).__name__)


def target_problem(key: str, horizon: int | None = None) -> Any:
    """The problem of this name."""
    if key not in PROBLEMS:
        raise InvalidInput(
            f"there is no problem {key!r} to compare at a rate; there are {', '.join(PROBLEMS)}"
        )
    return problem_of(key, horizon)


def keys_of(names: str) -> tuple[str, ...]:
    """Problems by their names with commas between; "all" is all of them.

    >>> from coldq.experiments.targets import keys_of
    >>> keys_of("jobs, autoscale"), len(keys_of("all"))
    (('jobs', 'autoscale'), 4)
    """
    if names.strip() == "all":
        return PROBLEMS
    keys = tuple(name.strip() for name in names.split(",") if name.strip())
    if not keys:
        raise InvalidInput(
            f"{names!r} names no problem to compare at a rate; there are {', '.join(PROBLEMS)}"
        )
    return keys


def rates_of(text: str) -> tuple[float, ...]:
    """Rates with commas between.

    >>> from coldq.experiments.targets import rates_of
    >>> rates_of("0.01, 0.05")
    (0.01, 0.05)
    """
    try:
        rates = tuple(float(one) for one in text.split(","))
    except ValueError:
        raise InvalidInput(f"rate must be a share such as 0.01, but is {text!r}") from None
    for rate in rates:
        rate_of(rate)
    return rates


def measure_target(
    key: str,
    rates: Iterable[float],
    seeds: Iterable[int] = range(5),
    *,
    horizon: int | None = None,
    last: int | None = None,
    curves: bool = True,
    done: Callable[[str], None] = lambda what: None,
) -> list[Target]:
    """Play all that keep a rate, and those who do not know it, on the problem of this name.

    One result for each rate. The last two thirds are scored, or the `last` so many slots alone. Of
    a problem that shows every seed the same one is played.

    >>> from coldq.experiments.targets import measure_target
    >>> (target,) = measure_target("autoscale", [0.1], seeds=[0], horizon=60, curves=False)
    >>> [score.name for score in target.scores][:2]
    ['SelfTuning', 'SafetyMargin(COLDQ)']
    """
    problem = target_problem(key, horizon)
    return measure_problem(key, problem, rates, seeds, last=last, curves=curves, done=done)


def measure_problem(
    key: str,
    problem: Any,
    rates: Iterable[float],
    seeds: Iterable[int] = range(5),
    *,
    last: int | None = None,
    curves: bool = True,
    done: Callable[[str], None] = lambda what: None,
) -> list[Target]:
    """The same on a problem that is given; `key` names it in files."""
    seeds = told_apart(problem, seed_tuple(seeds))
    asked, begin = tuple(map(_named_rate, rates)), first_scored(problem.horizon, last)
    X = problem.domain
    makers: dict[str, Callable[[float], Any]] = {
        OURS: lambda rate: SelfTuning(X, rate),
        "SafetyMargin(COLDQ)": lambda rate: SafetyMargin(COLDQ.for_problem(problem), rate),
        "SafetyMargin(RECOO)": lambda rate: SafetyMargin(RECOO.for_problem(problem), rate),
    }

    def scored(name: str, learner: Learner) -> Score:
        return score(name, learner, problem, seeds, begin)

    played: dict[str, dict[float, Score]] = {}
    for name, make in makers.items():
        some = sorted({*asked, *(RATES if curves else ())}, reverse=True)
        played[name] = {rate: scored(name, make(rate)) for rate in some}
        done(name)
    ours = played[OURS]
    unaware = [
        scored("COLDQ", COLDQ.for_problem(problem)),
        scored("COLDQ.scaled", _quiet_scaled(problem)),
    ]
    done("COLDQ")
    limits = {rate: max(ours[rate].share[0], 1e-9) for rate in asked}
    split = begin / problem.horizon
    before, after = try_finely(
        problem, [(0.0, split), (split, 1.0)], seeds, (*asked, *limits.values())
    )
    done("headrooms")
    met = ours
    if seeds[1:]:
        first = seeds[:1]
        met = {rate: score(OURS, makers[OURS](rate), problem, first, begin) for rate in asked}
    held = _against_rivals(problem, seeds[:1], begin, {rate: met[rate] for rate in asked}, done)
    points = {
        name: tuple(sorted((one.share[0], one.cost[0]) for one in some.values()))
        for name, some in played.items()
    }
    points["headroom"] = tuple((one.share, one.cost) for one in after)
    by_hand: dict[float, Score] = {}
    found = []
    for rate in asked:
        chosen = {
            "headroom, tuned on the slots before": choose_headroom(before, rate).headroom,
            "headroom, best in hindsight": choose_headroom(after, rate).headroom,
            "headroom, best at SelfTuning's share": choose_headroom(after, limits[rate]).headroom,
        }
        for h in set(chosen.values()) - set(by_hand):
            by_hand[h] = scored("headroom", BestResponse.for_problem(problem, headroom=h))
        named = [replace(by_hand[h], name=f"{name} ({h:.3g})") for name, h in chosen.items()]
        scores = (*(some[rate] for some in played.values()), *named, *unaware)
        found.append(Target(key, rate, problem, seeds, begin, scores, *held[rate], points, ours))
    done("headroom at the rates")
    return found


def _against_rivals(
    problem: Problem,
    seeds: tuple[int, ...],
    begin: int,
    ours: Mapping[float, Score],
    done: Callable[[str], None],
) -> dict[float, tuple[Score, tuple[Rivalry, ...], Score, tuple[float, float, float]]]:
    """For each rate SelfTuning's score as given, all rivals, the best at its share, and `saved`."""
    shares = {rate: max(one.share[0], 1e-9) for rate, one in ours.items()}
    part = (begin / problem.horizon, 1.0)
    (tried,) = try_finely(problem, [part], seeds, shares.values())
    found = {}
    for (rate, share), tuned in zip(
        shares.items(), tune(problem, seeds, begin, list(shares.items()), done), strict=True
    ):
        h = choose_headroom(tried, share).headroom
        learner = BestResponse.for_problem(problem, headroom=h)
        by_hand = score(f"headroom ({h:.3g})", learner, problem, seeds, begin)
        rivals = tuple(_rivalry(one, begin) for one in tuned)
        best = cheapest_at([by_hand, *(one.at_share for one in rivals)], ours[rate])
        found[rate] = ours[rate], rivals, best, _saved(ours[rate], best)
    return found


def _named_rate(rate: Any) -> float:
    q = rate_of(rate)
    if q is None:
        raise InvalidInput("compare at a rate needs one, such as 0.01")
    return q


def first_scored(horizon: int, last: int | None) -> int:
    """How many slots come before those that are scored.

    >>> from coldq.experiments.targets import first_scored
    >>> first_scored(2016, None), first_scored(2016, 576)
    (672, 1440)
    """
    if last is None:
        return round(SCORED_FROM * horizon)
    if whole_number("last", last, 1) >= horizon:
        raise InvalidInput(f"last must be some of the {horizon} slots, but is {last}")
    return horizon - last


def _quiet_scaled(problem: Problem) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        return COLDQ.for_problem(problem, scaled=True)


def score(
    name: str, learner: Learner, problem: Problem, seeds: tuple[int, ...], begin: int
) -> Score:
    """One learner's run, scored from slot `begin` + 1 on."""
    trace = simulate(learner, problem, seeds, keep=["decisions"], progress=False)
    bad = np.zeros(trace.loss.shape, bool)
    for t, revealed in replay(problem, seeds, trace.decisions):
        g, x = trace.constraint[:, t - 1], trace.decisions[:, t - 1]  # type: ignore[index]
        bad[:, t - 1] = is_violated(revealed.constraint, g, x, problem.domain)
    full = np.nan if trace.reduced is None else float(trace.reduced[:, begin:].mean())
    violation = float(trace.violation[:, begin:].sum(axis=(1, 2)).mean())
    return _score(name, trace.loss[:, begin:], bad[:, begin:], violation, full)


def _score(
    name: str, costs: Array, bad: np.ndarray, violation: float, reduced: float = np.nan
) -> Score:
    """A score from the costs and violated slots (S, T) that count."""
    cost, share = costs.mean(axis=0), bad.mean(axis=0)
    return Score(name, block_interval(cost), block_interval(share), violation, reduced, cost, share)


def _rivalry(tuned: Tuned, begin: int) -> Rivalry:
    def scored(choice: Choice) -> Score:
        one = tuned.played[choice]
        name = tuned.rival.words(choice)
        return _score(name, one.cost[:, begin:], one.bad[:, begin:], one.violation)

    return Rivalry(tuned.rival.name, scored(tuned.before), scored(tuned.at_share))


def cheapest_at(rivals: Sequence[Score], ours: Score) -> Score:
    """The cheapest rival whose share is not above ours, or else the one of least share."""
    kept = [one for one in rivals if one.share[0] <= max(ours.share[0], 1e-9)]
    if not kept:
        return min(rivals, key=lambda one: one.share[0])
    return min(kept, key=lambda one: one.cost[0])


def block_interval(
    series: Array, statistic: Callable[[Array], Array] | None = None
) -> tuple[float, float, float]:
    """The mean of a series and its 95% interval by a circular block bootstrap; bits stay the same.

    >>> import numpy as np
    >>> from coldq.experiments.targets import block_interval
    >>> mean, low, high = block_interval(np.arange(200.0) % 7)
    >>> low < mean < high
    True
    """
    value = statistic or (lambda mean: mean)
    low, high = np.quantile(value(block_means(series)), (0.025, 0.975))
    return float(value(series.mean(axis=-1))), float(low), float(high)


def block_length(slots: int) -> int:
    """How many slots a block has: 48, fewer in a short run, more in a very long one.

    >>> from coldq.experiments.targets import block_length
    >>> block_length(1344), block_length(100), block_length(1_000_000)
    (48, 25, 1000)
    """
    return min(max(BLOCK, slots // MOST_BLOCKS), max(slots // 4, 1))


def block_means(series: Array) -> Array:
    """The means of samples of a series that are put together from its blocks, the same always.

    A block that reaches the end goes on at the beginning: else the slots near both ends were drawn
    less often than the others, and the samples' own mean were not that of the series.
    """
    T = series.shape[-1]
    block = block_length(T)
    starts = np.random.default_rng(0).integers(0, T, (DRAWS, -(-T // block)))
    around = np.concatenate([series, series[..., : block - 1]], axis=-1)
    sums = np.cumsum(around, axis=-1)
    sums = np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)
    return (sums[..., starts + block] - sums[..., starts]).mean(axis=-1) / block


def overall(targets: Sequence[Target]) -> tuple[float, float, float]:
    """The geometric mean of SelfTuning's cost over the best rival's, with its 95% interval.

    >>> from coldq.experiments.targets import measure_target, overall
    >>> targets = measure_target("autoscale", [0.1], seeds=[0], horizon=60, curves=False)
    >>> ratio, low, high = overall(targets)
    >>> round(ratio + targets[0].saved[0], 12)
    1.0
    """
    pairs = [_paired(target.met, target.best) for target in targets]
    means = np.mean([np.log(pair[0].mean() / pair[1].mean()) for pair in pairs])
    drawn = np.mean([np.log(np.divide(*block_means(pair))) for pair in pairs], axis=0)
    low, high = np.exp(np.quantile(drawn, (0.025, 0.975)))
    return float(np.exp(means)), float(low), float(high)


def _paired(one: Score, other: Score) -> Array:
    return np.stack([one.cost_series, other.cost_series])


def _saved(one: Score, other: Score) -> tuple[float, float, float]:
    """How much cheaper one is than another, as a share of the other's cost, slot by slot."""
    return block_interval(_paired(one, other), lambda means: 1.0 - means[0] / means[1])
