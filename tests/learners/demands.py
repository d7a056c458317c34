"""Streams and adversaries that a violation rate is kept against: demands, given what is played.

Each is called as ``(slot, x, rng, memory)`` with x (runs, rows), what every row is served with, and
returns demands (runs, rows) between 0 and 100. An adversary's `memory` is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import coldq

Demand = Callable[[int, Any, Any, dict[str, Any]], Any]
TOP = 95.0  # what an adversary asks for at most: some decision always serves it


def usual(x: Any, rng: Any) -> Any:
    return 10.0 + 0.01 * rng.standard_normal(x.shape)


def every(k: int) -> Demand:
    return lambda t, x, rng, m: usual(x, rng) + (40.0 if t % k == 0 else 0.0)


def at_random(share: float) -> Demand:
    return lambda t, x, rng, m: usual(x, rng) + 40.0 * (rng.random((len(x), 1)) < share)


def of_random_size(share: float) -> Demand:
    return lambda t, x, rng, m: (
        usual(x, rng) + 40.0 * (rng.random(x.shape) < share) * rng.random(x.shape)
    )


def regimes(t: int, x: Any, rng: Any, m: Any) -> Any:
    return usual(x, rng) + 40.0 * ((t // 50) % 2)


def volatile(t: int, x: Any, rng: Any, m: Any) -> Any:
    return 50.0 + (4.0 if (t // 100) % 2 else 0.5) * rng.standard_normal(x.shape)


def heavy(t: int, x: Any, rng: Any, m: Any) -> Any:
    return np.clip(50.0 + 3.0 * rng.standard_t(2.0, x.shape), 0.0, TOP)


def wandering(t: int, x: Any, rng: Any, m: Any) -> Any:
    m["level"] = np.clip(m.get("level", 40.0) + rng.standard_normal(x.shape), 5.0, 80.0)
    return m["level"]


STREAMS: dict[str, Demand] = {
    **{f"every {k}": every(k) for k in (10, 12, 20, 50, 100, 300)},
    **{f"at random {share}": at_random(share) for share in (0.1, 0.03, 0.01)},
    **{f"of random size {share}": of_random_size(share) for share in (0.1, 0.03)},
    "regimes": regimes,
    "volatile": volatile,
    "heavy": heavy,
    "wandering": wandering,
}


def just_above(t: int, x: Any, rng: Any, m: Any) -> Any:
    return np.where(rng.random((len(x), 1)) < 0.5, x + 0.05, 10.0)


def always(t: int, x: Any, rng: Any, m: Any) -> Any:
    return x + 0.01


def climbing(t: int, x: Any, rng: Any, m: Any) -> Any:
    """Just above what is played until the top, then ten slots of rest."""
    rest = m.get("rest", np.zeros(x.shape))
    m["rest"] = np.where(rest > 0.0, rest - 1.0, np.where(x >= TOP, 10.0, 0.0))
    return np.where(rest > 0.0, 10.0, x + 0.1)


def after_a_lull(t: int, x: Any, rng: Any, m: Any) -> Any:
    """Quiet while what was learned is forgotten, then all out."""
    return usual(x, rng) if t % 300 < 200 else x + 0.5


def doubling(t: int, x: Any, rng: Any, m: Any) -> Any:
    return np.where(rng.random((len(x), 1)) < 0.05, 2.0 * x + 1.0, 10.0)


def while_it_is_low(t: int, x: Any, rng: Any, m: Any) -> Any:
    return np.where(x < 30.0, x + 1.0, 10.0)


def in_bursts(t: int, x: Any, rng: Any, m: Any) -> Any:
    return x + 0.2 if t % 100 < 15 else usual(x, rng)


def breaking_records(t: int, x: Any, rng: Any, m: Any) -> Any:
    """Spikes, each a little larger than all before."""
    hit = rng.random(x.shape) < 0.03
    m["size"] = m.get("size", np.ones(x.shape)) * np.where(hit, 1.15, 1.0)
    return np.where(hit, 10.0 + np.minimum(m["size"], 85.0), 10.0)


def when_it_falls(t: int, x: Any, rng: Any, m: Any) -> Any:
    """Just above what is played whenever less is played than the slot before."""
    fell = x < m.get("last", x)
    m["last"] = np.array(x)
    return np.where(fell, x + 0.3, 10.0)


def one_row_at_a_time(t: int, x: Any, rng: Any, m: Any) -> Any:
    mine = rng.integers(x.shape[1], size=(len(x), 1)) == np.arange(x.shape[1])
    return np.where(mine, x + 0.1, 10.0)


ADVERSARIES: dict[str, Demand] = {
    one.__name__: one
    for one in (just_above, always, climbing, after_a_lull, doubling, while_it_is_low, in_bursts,
                breaking_records, when_it_falls, one_row_at_a_time)
}  # fmt: skip
ALL = STREAMS | ADVERSARIES


class Setting:
    """A domain, and rows ``x_n / u_n >= demand`` in units u_n of their own."""

    def __init__(self, kind: str) -> None:
        self.kind, self.rows = kind, 1 if kind == "box" else 5
        self.units = np.logspace(0.0, 3.0, self.rows) if kind == "boxes" else np.ones(self.rows)
        p = self.rows + (kind == "simplex")
        if kind == "simplex":
            self.domain: Any = coldq.Simplex(p, total=100.0 * self.rows)
        elif kind == "polytope":
            self.domain = coldq.Polytope(np.ones((1, p)), [100.0 * p], 0.0, [400.0] * p)
        else:
            self.domain = coldq.Box(0.0, 100.0 * self.units, dim=p)
        self.A = np.eye(self.rows, p) / self.units[:, None]

    def served(self, x: Any) -> Any:
        return x[..., : self.rows] / self.units

    def feedback(self, demand: Any) -> coldq.Feedback:
        A = np.broadcast_to(-self.A, (*demand.shape, self.A.shape[-1]))
        price = np.ones(self.A.shape[-1])
        price[: self.rows] /= self.units
        price[self.rows :] = 0.0
        return coldq.Feedback(coldq.Linear(price), coldq.Affine(A, -demand))


class Run:
    """What happened: flags and overdrafts (slots, runs), by demand in `names`."""

    def __init__(
        self, learner: Any, setting: Setting, demands: dict[str, Demand], runs: int, slots: int,
        delay: int = 0, seed: int = 0,
    ) -> None:  # fmt: skip
        rng, memory = np.random.default_rng(seed), {name: {} for name in demands}
        names, batch = list(demands), (runs * len(demands),)
        state, made = learner.init(setting.rows, batch=batch), []
        self.names, self.learner = np.repeat(names, runs), learner
        self.flags, self.reduced = np.zeros((slots, *batch), bool), np.zeros((slots, *batch), bool)
        self._safe, self._highest = np.zeros(batch, bool), np.zeros((*batch, setting.rows))
        self.bounds, self.costs = np.zeros((slots, *batch)), np.zeros(batch)
        for t in range(1, slots + 1):
            made = [*made[-delay:], state] if delay else [state]
            played = made[0].x
            x = setting.served(played)
            demand = np.concatenate(
                [
                    demands[name](t, x[k * runs : (k + 1) * runs], rng, memory[name])
                    for k, name in enumerate(names)
                ]
            )
            demand = np.clip(demand, 0.0, TOP)
            self.flags[t - 1] = (demand > x + 2e-6).any(axis=-1)
            self.reduced[t - 1] = state.reduced
            self.costs += x.mean(axis=-1) / slots
            state = learner.update(state, setting.feedback(demand), played if delay else None)
            self.bounds[t - 1] = self._bound(state, made[0], demand - x, delay)
        self.state, self.overdraft = state, learner.bound_report(state)["overdraft"]

    def _bound(self, state: Any, made: Any, found: Any, delay: int) -> Any:
        """The most that the overdraft can be; of late feedback, with the surprise that was met.

        A learner sees how far the last forecast was wrong, not that of the decision's own slot.
        """
        if not delay:
            return self.learner.bound_report(state)["overdraft_bound"]
        at = made.forecast[:, None, None]
        surprise = found - np.take_along_axis(made.predicted, at, axis=1)[:, 0]
        highest = np.where(self._safe[:, None], np.maximum(self._highest, surprise), 0.0)
        self._safe, self._highest = state.safe, highest
        met = replace(state, highest=np.maximum(state.highest, highest))
        return self.learner.bound_report(met, delay)["overdraft_bound"]

    def overdrafts(self, q: float) -> Any:
        """D after each slot, from the violations alone."""
        found, D = np.empty(self.flags.shape), np.zeros(self.flags.shape[1:])
        for t, v in enumerate(self.flags):
            D = np.maximum(0.0, D + v - q)
            found[t] = D
        return found
