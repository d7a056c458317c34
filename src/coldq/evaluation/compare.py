"""Learners side by side on any problem, with a violation rate to be kept or without one.

With a rate, a safety margin is tuned on the first third of the slots, every learner plays all of
them, and all are scored on the last two thirds, on which nothing was tuned. Beside the learners
that play by default stand then the forecasts with margins of :mod:`coldq.evaluation.rivals`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.arrays import Array, quiet, whole_number
from coldq.base.errors import Error, InvalidInput, WeakPrice
from coldq.base.protocols import require_learner, require_problem
from coldq.evaluation.coinciding import coinciding
from coldq.evaluation.comparison import (
    HINDSIGHT_AT_RATE,
    IN_HINDSIGHT,
    TUNED_BEFORE,
    Comparison,
    Result,
    Rivalry,
    is_kept,
)
from coldq.evaluation.intervals import front, holm, interval, p_value
from coldq.evaluation.named import distinct_seeds, learners_of, make, named_problem, own_learner
from coldq.evaluation.rivals import TUNING_PASSES, Choice, TunedRival, tune
from coldq.evaluation.safety_margins import MarginScore, tune_safety_margin
from coldq.evaluation.scores import COMPARATORS, Score, Setting
from coldq.learners import CATALOGUE, COLDQ, RECOO, BestResponse, SafetyMargin, SelfTuning
from coldq.learners.forecast_margins import rate_of
from coldq.simulation.loop import seed_tuple

DEFAULT_SEEDS = (0, 1, 2, 3, 4)  # of a problem that differs from seed to seed
TUNING_SHARE = 1.0 / 3.0
LEAST_SHARE = 1e-9  # a share of no slots at all: a rate is above zero
Maker = Callable[[float | None], Any]


def compare(
    problem: Any,
    learners: Any = None,
    rate: float | None = None,
    *,
    seeds: Iterable[int] | None = None,
    last: int | None = None,
    title: str | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> Comparison:
    """What learners would have done with a problem: loss, violation and regret side by side.

    Parameters
    ----------
    problem
        One of :mod:`coldq.problems`, one from :func:`coldq.problems.from_table`, your own, or its
        name as `coldq compare` takes it: "autoscale", "my-load.toml", "mine:problem".
    learners
        Names or classes, "mine:learner", learners, or a mapping of learners by name; by default
        ``coldq.learners.CATALOGUE``, with a rate also COLDQ and RECOO with a safety margin, and
        forecasts with margins, tuned.
    rate
        The share of slots that may be violated: those that can be told it, are, and
        :class:`~coldq.BestResponse` is there with the safety margin that was cheapest at that rate
        on the first part; it is the reference that the others are compared with. Without a rate
        nothing is tuned, all slots are scored, and the reference is the first that plays.
    seeds
        By default five; of a problem that is the same for all, one is played.
    last
        With a rate: score the last so many slots, not the last two thirds.
    title
        What the problem is called in the table; by default its own name.

    >>> import coldq
    >>> table = coldq.compare(coldq.problems.OnlineLinear(horizon=60), ["COLDQ", "RECOO"])
    >>> [one.learner for one in table], bool((table["COLDQ"].dynamic_regret > 0.0))
    (['COLDQ', 'RECOO'], True)
    >>> table = coldq.compare(coldq.problems.Autoscale(90), ["COLDQ"], rate=0.05)
    >>> [one.learner.partition(",")[0] for one in table]
    ['safety margin 0.249', 'COLDQ']
    """
    return comparisons(problem, learners, (rate,), seeds, last=last, title=title, done=done)[0]


@quiet
def comparisons(
    problem: Any,
    learners: Any = None,
    rates: Iterable[float | None] = (None,),
    seeds: Iterable[int] | None = None,
    *,
    last: int | None = None,
    title: str | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> list[Comparison]:
    """Compare at several rates, for each of which only those play anew that are told it.

    >>> import coldq
    >>> from coldq.evaluation.compare import comparisons
    >>> problem = coldq.problems.Autoscale(60)
    >>> [one.rate for one in comparisons(problem, ["SelfTuning"], [0.1, 0.2])]
    [0.1, 0.2]
    """
    if isinstance(problem, str | Path):
        name, problem = named_problem(str(problem))
        title = name if title is None else title
    require_problem(problem)
    if getattr(problem, "agents", None) is not None:
        raise InvalidInput(f"problem must have no agents, but has {problem.agents}")
    seeds = distinct_seeds(problem, seed_tuple(DEFAULT_SEEDS if seeds is None else seeds))
    rates = tuple(None if rate is None else rate_of(rate) for rate in rates)
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title must be some text, but is {title!r:.200}")
    if not callable(done):
        raise InvalidInput(f"done must be a function that takes what has played, but is {done!r}")
    with_rate = rates != (None,)
    if last is not None and not with_rate:
        raise InvalidInput("last says which slots are scored at a rate, and needs one")
    begin = first_scored(problem.horizon, last) if with_rate else 0
    players = _players(problem, learners, with_rate)
    title = getattr(problem, "title", type(problem).__name__) if title is None else title
    setting, outcomes = Setting(problem, seeds, begin), {}
    at_rates = [_at_rate(setting, players, rate, outcomes, done) for rate in rates]
    if with_rate and learners is None:
        _compare_with_rivals(setting, at_rates, done)
    return [_compared(str(title), setting, one) for one in at_rates]


@dataclass(eq=False)
class AtRate:
    """Scores and absences at one rate, as they come in."""

    rate: Any
    scores: list[Score]
    left_out: dict[str, str]
    tuned: MarginScore | None = None
    rivalry: Rivalry | None = None


def first_scored(horizon: int, last: int | None) -> int:
    """How many slots come before those that are scored at a rate.

    >>> from coldq.evaluation.compare import first_scored
    >>> first_scored(2016, None), first_scored(2016, 576)
    (672, 1440)
    """
    begin = round(TUNING_SHARE * horizon)
    if last is not None:
        if whole_number("last", last, 1) >= horizon:
            raise InvalidInput(
                f"last must be less than the {horizon:,} slots there are, since some come before "
                f"the scored ones, but is {last:,}"
            )
        begin = horizon - last
    if not 1 < begin < horizon:
        raise InvalidInput(f"{horizon} slots are too few to tune on some and score others")
    return begin


def count_of(learners: Any, rates: Sequence[Any]) -> int:
    """How many parts a comparison has, as far as it is known before."""
    if learners:
        return len(learners) * len(rates) + (rates[0] is not None)
    tuned = 0 if rates[0] is None else 3 * (len(rates) - 1) + TUNING_PASSES + 2
    return len(CATALOGUE) + 3 + tuned


def _players(problem: Any, learners: Any, with_rate: bool) -> list[tuple[str, Maker, bool]]:
    """Learners by name, what makes them at a rate, and whether that is told to them.

    Who is not known is refused before anybody plays.
    """
    if learners is None:
        players = [(kind.__name__, *_maker(problem, kind, named=False)) for kind in CATALOGUE]
        players.append(("COLDQ.scaled", lambda rate: _scaled(problem), False))
        for kind in (COLDQ, RECOO) if with_rate else ():
            plain, _ = _maker(problem, kind, named=False)
            players.append((f"SafetyMargin({kind.__name__})", _with_margin(plain), True))
        return players
    if isinstance(learners, Mapping):
        pairs = [(str(name), learner) for name, learner in learners.items()]
    else:
        some = [learners] if isinstance(learners, str | type) else learners
        if not isinstance(some, Iterable) or isinstance(some, np.ndarray):
            raise InvalidInput(
                f"learners must be names, classes or learners, but is {learners!r:.200}"
            )
        pairs = [(_name(one), one) for one in some]
    if not pairs:
        raise InvalidInput("learners is empty; leave it out to have those that play by default")
    return [(name, *_maker(problem, one, named=True)) for name, one in pairs]


def _name(one: Any) -> str:
    if isinstance(one, str):
        return one if ":" in one else learners_of([one])[0].__name__
    return getattr(one, "__name__", type(one).__name__)


def _maker(problem: Any, one: Any, *, named: bool) -> tuple[Maker, bool]:
    """What makes a learner at a rate, or says why it does not play, and whether it is told it."""
    if isinstance(one, str) and ":" in one:
        own = own_learner(one)
        return lambda rate: own(problem), False
    if isinstance(one, str):
        (one,) = learners_of([one])
    if not isinstance(one, type):
        require_learner(one)
        return lambda rate: one, False
    if not hasattr(one, "for_problem"):
        raise InvalidInput(f"{one.__name__} is a class without for_problem: pass a learner of it")
    if one is SelfTuning:
        return lambda rate: make(SelfTuning, problem, named=named, violation_rate=rate), True
    return lambda rate: make(one, problem, named=named), False


def _with_margin(plain: Maker) -> Maker:
    def make_with_margin(rate: Any) -> Any:
        inner = plain(rate)
        return inner if isinstance(inner, str) else SafetyMargin(inner, rate)

    return make_with_margin


def _scaled(problem: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        return make(COLDQ, problem, named=False, scaled=True)


def _at_rate(
    setting: Setting,
    players: list[tuple[str, Maker, bool]],
    rate: float | None,
    outcomes: dict[Any, Score | str],
    done: Callable[[str], None],
) -> AtRate:
    """Everybody's score at a rate; at the first rate those that are not told it play for all."""
    problem, seeds, at_rate = setting.problem, setting.seeds, AtRate(rate, [], {})
    if rate is not None:
        split = setting.begin / problem.horizon
        try:
            at_rate.tuned = tune_safety_margin(problem, rate, (0.0, split), seeds=seeds)
            at_rate.scores.append(_by_hand(setting, at_rate.tuned.safety_margin, TUNED_BEFORE))
        except Error as error:
            at_rate.left_out["safety margin, tuned"] = str(error)
        done("safety margin")
    for k, (name, maker, takes_rate) in enumerate(players):
        key = (k, rate if takes_rate else None)
        if key not in outcomes:
            outcomes[key] = _outcome(setting, name, maker, rate)
            done(name)
        outcome = outcomes[key]
        if isinstance(outcome, str):
            at_rate.left_out[name] = outcome
        else:
            at_rate.scores.append(outcome)
    if not at_rate.scores:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in at_rate.left_out.items())
        raise InvalidInput(f"no learner can play this problem: {reasons}")
    return at_rate


def _outcome(setting: Setting, name: str, maker: Maker, rate: float | None) -> Score | str:
    try:
        learner = maker(rate)
        return learner if isinstance(learner, str) else setting.score(name, learner)
    except Error as error:
        return str(error)


def _by_hand(setting: Setting, h: float, tuned: str, count: int | None = None) -> Score:
    learner = BestResponse.for_problem(setting.problem, safety_margin=h)
    return setting.score(f"safety margin {h:.3g}, {tuned}", learner, tuned, count)


def _compare_with_rivals(
    setting: Setting, at_rates: list[AtRate], done: Callable[[str], None]
) -> None:
    """Hold SelfTuning against a safety margin and all rivals, tuned before and in hindsight.

    Rivals play the first seed alone, because of each hundreds of choices are tried.
    """
    problem, begin, first = setting.problem, setting.begin, setting.seeds[:1]
    after = (begin / problem.horizon, 1.0)
    ours = [next((s for s in one.scores if s.name == "SelfTuning"), None) for one in at_rates]
    targets = [
        (one.rate, one.rate if score is None else max(float(score.bad[0].mean()), LEAST_SHARE))
        for one, score in zip(at_rates, ours, strict=True)
    ]
    try:
        for one, (rate, share) in zip(at_rates, targets, strict=True):
            best = tune_safety_margin(problem, rate, after, seeds=setting.seeds)
            one.scores.append(_by_hand(setting, best.safety_margin, HINDSIGHT_AT_RATE))
            best = tune_safety_margin(problem, share, after, seeds=first)
            one.scores.append(_by_hand(setting, best.safety_margin, IN_HINDSIGHT, 1))
        done("safety margin in hindsight")
        for one, tuned in zip(at_rates, tune(problem, first, begin, targets, done), strict=True):
            for rival in tuned:
                one.scores.append(_of_rival(setting, rival, rival.before, TUNED_BEFORE))
                one.scores.append(_of_rival(setting, rival, rival.at_share, IN_HINDSIGHT))
    except Error as error:
        for one in at_rates:
            one.left_out["forecasts with margins"] = str(error)
        return
    for one, score in zip(at_rates, ours, strict=True):
        if score is not None:
            one.rivalry = best_rival(
                score, [rival for rival in one.scores if rival.tuned == IN_HINDSIGHT]
            )


def _of_rival(setting: Setting, tuned: TunedRival, choice: Choice, words: str) -> Score:
    played, begin = tuned.played[choice], setting.begin
    loss = played.cost[:, begin:]
    violation = np.full((1, 1), played.violation / loss.shape[1])
    name = f"{tuned.rival.words(choice)}, {words}"
    soft, (excess, _) = np.full(1, np.nan), setting.excess(loss)
    return Score(name, loss, played.bad[:, begin:], violation, soft, excess, words)


def best_rival(ours: Score, rivals: Sequence[Score]) -> Rivalry:
    """SelfTuning on the first seed, and the cheapest rival whose share is not above its own.

    Where none has as small a share, it is the one of least share.
    """
    share = float(ours.bad[0].mean())
    kept = [one for one in rivals if one.share <= max(share, LEAST_SHARE)]
    if kept:
        best = min(kept, key=lambda one: float(one.loss.mean()))
    else:
        best = min(rivals, key=lambda one: one.share)
    return Rivalry(share, ours.loss[0], best.name, best.share, best.loss[0])


def _compared(title: str, setting: Setting, one: AtRate) -> Comparison:
    """The table of one rate, in its order."""
    rate = one.rate
    scores = dict(zip(_different([score.name for score in one.scores]), one.scores, strict=True))
    rows = dict(zip(scores, _results(scores), strict=True))

    def standing(name: str) -> tuple[float, ...]:
        row = rows[name]
        if rate is None:
            return (row.violation, row.loss)
        hindsight = float(row.tuned.startswith(IN_HINDSIGHT))
        kept = is_kept(row.share, rate)
        return (hindsight, 0.0, row.loss) if kept else (hindsight, 1.0, row.share, row.loss)

    order = sorted(rows, key=standing)
    ran = {
        name: s for name, s in scores.items() if s.learner is not None and s.tuned != IN_HINDSIGHT
    }
    same = coinciding(
        setting.problem,
        {name: s.learner for name, s in ran.items()},
        {name: np.concatenate([s.loss, s.bad, s.violation], axis=None) for name, s in ran.items()},
    )
    notes = dict.fromkeys((*setting.notes, *(words for s in one.scores for words in s.notes)))
    if any(len(score.loss) < len(setting.seeds) for score in one.scores):
        words = "Forecasts with margins, and a safety margin in hindsight, have the first seed, "
        notes = {f"{words}{setting.seeds[0]}.": None, **notes}
    return Comparison(
        title,
        setting.problem,
        setting.seeds,
        rate,
        setting.begin,
        next(iter(scores)),
        tuple(rows[name] for name in order),
        _by_seed(setting.seeds, {name: scores[name] for name in order}),
        one.left_out,
        one.tuned,
        (*notes, *same),
        one.rivalry,
    )


def _by_seed(seeds: tuple[int, ...], scores: Mapping[str, Score]) -> dict[str, list[Any]]:
    """Means a slot of each learner and seed, as columns."""
    each = [(name, one, k) for name, one in scores.items() for k in range(len(one.loss))]
    return {
        "learner": [name for name, _, _ in each],
        "seed": [seeds[k] for _, _, k in each],
        "loss": [float(one.loss[k].mean()) for _, one, k in each],
        "violation": [float(one.violation[k].mean()) for _, one, k in each],
        "soft_violation": [float(one.soft[k]) for _, one, k in each],
        "share": [float(one.bad[k].mean()) for _, one, k in each],
        **{
            f"{kind}_regret": [float(one.regret(kind)[k]) for _, one, k in each]
            for kind in COMPARATORS
        },
    }


def _results(scores: Mapping[str, Score]) -> list[Result]:
    """A row for each score; the first is what the others are compared with."""
    base, *others = scores.values()
    pairs = [(_apart(one.loss, base.loss), _apart(one.bad * 1.0, base.bad * 1.0)) for one in others]
    p = iter(holm([p_value(series) for pair in pairs for series in pair]))
    means = np.array([(one.loss.mean(), one.violation.mean()) for one in scores.values()])
    means[[one.tuned.startswith(IN_HINDSIGHT) for one in scores.values()]] = np.inf
    ahead, rows = front(means), []
    for k, ((name, one), pair) in enumerate(zip(scores.items(), [None, *pairs], strict=True)):
        apart = [0.0, 0.0, 0.0, 1.0] * 2
        if pair is not None:
            apart = [number for series in pair for number in (*interval(series), next(p))]
        loss = interval(one.loss)
        violation = np.maximum(interval(one.violation), 0.0)  # as one over seeds may end below
        share = np.clip(interval(one.bad), 0.0, 1.0)
        regrets = (float(one.regret(kind).mean()) for kind in COMPARATORS)
        start, slot = one.seconds
        rows.append(
            Result._make((
                name, one.tuned, *loss, *violation.tolist(), *share.tolist(),
                float(one.soft.mean()), *regrets, *apart, one.reduced, slot, start,
                k in ahead and bool(np.isfinite(means[k, 0])),
            ))
        )  # fmt: skip
    return rows


def _apart(one: Array, other: Array) -> Array:
    """The difference on the seeds that both played."""
    count = min(len(one), len(other))
    return one[:count] - other[:count]


def _different(names: list[str]) -> list[str]:
    """Names, those that come again with a number."""
    seen: dict[str, int] = {}
    different = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        different.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return different
