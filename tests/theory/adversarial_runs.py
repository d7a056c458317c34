"""Runs drawn to break a report: ``python -m tests.theory.adversarial_runs --runs 5000``.

Every run is a learner with parameters of any size on any kind of bounded domain that a step takes
(a ``CustomDomain`` is for learners that only project, and none of those has a bound), against an
adversary that answers to x, with slots in which nothing is feasible. No bound may be exceeded
unless an assumption is seen to fail. At the end stands, for each learner and bound, the largest
share of it that a run had. Runs made by hand that come close to each bound by the weights are in
``test_adversarial_runs.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

import coldq
from coldq.problems import Problem
from coldq.slot.schedules import Power


class Drawn(Problem):
    """An adversary on any domain: it keeps a target, and answers every decision with what hurts.

    The target jumps every `period` slots to the far end of the domain. The loss pushes away from
    it, with a bowl around it perhaps. Rows pass the target at a margin and lean so that x breaks
    them; in `lax` slots they are far away, in `blocked` ones no decision is feasible. `still` rows
    stay those of slot 1. `curved` ones are balls around the target.
    """

    adaptive = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, domain: Any, horizon: int, how: dict[str, Any]) -> None:
        self.domain, self.horizon, self.n_constraints = domain, horizon, how["rows"]
        self.how = how

    def start(self, seeds: Any) -> Any:
        return _Answers(self, len(tuple(seeds)))


class _Answers:
    def __init__(self, problem: Drawn, count: int) -> None:
        self.problem, self.count = problem, count
        self.rng = np.random.default_rng(problem.how["seed"])
        self.first: Any = None

    def far(self, x: np.ndarray) -> np.ndarray:
        """The farthest from x of some points on the edge of the domain."""
        X, best = self.problem.domain, x
        for _ in range(4):
            ahead = X.diameter * 10.0 * self.rng.standard_normal(x.shape)
            there = X.project(x + ahead)
            apart, before = (np.linalg.norm(y - x, axis=-1, keepdims=True) for y in (there, best))
            best = np.where(apart > before, there, best)
        return best

    def reveal(self, t: int, x: np.ndarray) -> coldq.Feedback:
        how, X, p, S = self.problem.how, self.problem.domain, x.shape[-1], self.count
        if (t - 1) % how["period"] == 0:
            self.target = self.far(np.array(x))
        away = x - self.target
        size = np.linalg.norm(away, axis=-1, keepdims=True)
        noise = self.rng.standard_normal((S, p))
        away = np.where(size > 1e-9 * X.diameter, away / np.maximum(size, 1e-300), noise)
        bowl = how["bowl"]
        loss = coldq.Quadratic(bowl * np.eye(p), how["push"] * away - bowl * self.target)
        constraint = self.rows(t, away)
        if how["still"]:
            self.first = constraint = constraint if self.first is None else self.first
        return coldq.Feedback(loss, constraint, slot=t)

    def rows(self, t: int, away: np.ndarray) -> Any:
        how, R, (S, p) = self.problem.how, self.problem.domain.diameter, away.shape
        N, height = how["rows"], how["height"]
        lax, blocked = (how[kind] > 0 and t % how[kind] == 0 for kind in ("lax", "blocked"))
        margin = height * R * (5.0 if lax else how["margin"])
        if how["curved"]:  # height (|x - target|^2 / R - radius)
            radius = -0.1 * R if blocked else 0.01 * R + margin / height
            P = np.broadcast_to(2.0 * height / R * np.eye(p), (S, N, p, p))
            q = np.broadcast_to(-2.0 * height / R * self.target[:, None, :], (S, N, p))
            r = height * (radius - (self.target**2).sum(axis=-1)[:, None] / R)
            return coldq.QuadraticConstraint(P, q, np.broadcast_to(r, (S, N)))
        A = how["lean"] * away[:, None, :] + self.rng.standard_normal((S, N, p))
        A = height * A
        b = np.einsum("snp,sp->sn", A, self.target) + margin
        if blocked:  # below the least of the first row over the whole domain
            b[:, 0] -= margin + 1.5 * R * np.linalg.norm(A[:, 0], axis=-1)
        return coldq.Affine(A, b)


def a_domain(rng: np.random.Generator) -> Any:
    """A bounded domain of any kind, not too large."""
    p, size = int(rng.integers(1, 4)), float(rng.choice([0.1, 1.0, 30.0]))
    corner = size * rng.uniform(-1.0, 0.0, p)
    kind = rng.integers(0, 7)
    if kind == 0:
        return coldq.Ball(corner, size)
    if kind == 1:
        return coldq.Simplex(p + 1, total=size)
    if kind == 2:
        return coldq.Simplex(p + 1, total=size, cap=0.8 * size)
    if kind == 3:
        A = rng.standard_normal((2, p))
        inside = corner + size * rng.uniform(0.2, 0.8, p)
        b = A @ inside + size * 0.3
        return coldq.Polytope(A, b, lower=corner, upper=corner + size)
    if kind == 4:
        return coldq.Product(coldq.Box(corner, corner + size), coldq.Ball([0.0, 0.0], size))
    if kind == 5:
        return coldq.Product(coldq.Simplex(2), coldq.Box(corner, corner + size))
    return coldq.Box(corner, corner + size)


def magnitude(rng: np.random.Generator, low: float, high: float) -> float:
    """A number of any order between two powers of ten."""
    return float(10.0 ** rng.uniform(low, high))


def a_learner(rng: np.random.Generator, X: Any, T: int) -> tuple[str, Any]:
    """A learner that has a report, its parameters of any size; and its name."""
    alpha = Power(rng.choice([0.0, 0.25, 0.5, 1.0]), magnitude(rng, -6, 6))
    weight, eta = magnitude(rng, -3, 6), float(rng.uniform(0.001, 0.95))
    kind = rng.integers(0, 9)
    if kind == 0:
        return "COLDQ", coldq.COLDQ(X, alpha=alpha, eta=eta, gamma=weight)
    if kind == 1:
        return "anytime", coldq.COLDQ.anytime(X, epsilon=weight, path_exponent=rng.uniform())
    if kind == 2:
        gamma = Power(rng.choice([-1.0, 0.0, 2.0]), weight)
        return "anytime", coldq.COLDQ(X, alpha=alpha, eta=Power(-0.5), gamma=gamma)
    if kind in (3, 4):
        gamma, floor = Power(0.5, magnitude(rng, -2, 3)), Power(0.5, magnitude(rng, -2, 3))
        reading = ("drift", "comparison")[kind - 3]
        return "RECOO", coldq.RECOO(X, alpha=alpha, gamma=gamma, eta=floor, reading=reading)
    if kind == 5:
        return "CLASP", coldq.CLASP(X, eta=Power(-rng.choice([0.0, 0.5]), magnitude(rng, -4, 4)))
    if kind == 6:
        step = Power(-rng.choice([0.0, 0.5, 1.0]), magnitude(rng, -4, 4))
        return "Yi2021", coldq.Yi2021(X, alpha=step, gamma=Power(0.25, magnitude(rng, -2, 3)))
    if kind == 7:
        gradient = str(rng.choice(["own", "shared"]))
        return "COLDQExpert", coldq.COLDQExpert(X, T, magnitude(rng, -3, 2), gradient=gradient)
    return "COLDQ", coldq.COLDQ(X, T, magnitude(rng, -3, 2))


def a_run(seed: int, number: int) -> tuple[str, coldq.BoundReport | str]:
    """One run, by its number: the learner's name, and its report or why there is none."""
    rng = np.random.default_rng([seed, number])
    X = a_domain(rng)
    curved = bool(rng.random() < 0.1)
    T = int(rng.integers(2, 7 if curved else 26))
    how = {
        "rows": int(rng.integers(1, 4)), "period": int(rng.integers(1, 30)),
        "lax": int(rng.integers(0, 5)), "blocked": int(rng.choice([0, 0, 3, 7])),
        "margin": float(rng.choice([0.0, 0.02, 0.3])), "height": magnitude(rng, -2, 2),
        "lean": float(rng.uniform(-1.0, 5.0)), "push": magnitude(rng, -2, 2),
        "bowl": float(rng.choice([0.0, 0.3, 2.0])), "still": bool(rng.random() < 0.3),
        "seed": int(rng.integers(10**6)), "curved": curved,
    }  # fmt: skip
    name, learner = a_learner(rng, X, T)
    start = X.project(X.start() + X.diameter * rng.standard_normal(X.dim))
    keep = ["decisions"] + (["queue"] if rng.random() < 0.5 and name != "CLASP" else [])
    keep = keep[:1] if name == "COLDQExpert" else keep
    try:
        trace = coldq.simulate(
            learner, Drawn(X, T, how), seeds=[0, 1], keep=keep, start=start, progress=False
        )
        return name, coldq.bound_report(trace, mu=0.5 * how["bowl"])
    except coldq.Infeasible:
        return name, "infeasible, as enforced rows are in a blocked slot"


class Tally:
    """What became of many runs: complaints, largest shares and counts."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.shares: dict[tuple[str, str, str], float] = {}
        self.counts: Counter[str] = Counter()

    def add(self, number: int, name: str, found: coldq.BoundReport | str) -> None:
        """Count a run; a bound that is exceeded though every assumption is kept is a complaint."""
        self.counts[name] += 1
        if isinstance(found, str):
            self.counts[found] += 1
            return
        failing = [a.name for a in found.assumptions if a.verdict == "fails"]
        self.counts.update(f"fails: {what}" for what in failing)
        self.counts["certified"] += found.holds
        for check in found.checks:
            # A slot without a feasible decision is no excuse for a bound that counts it.
            if check.exceeded.any() and set(failing) <= {"a feasible decision in every slot"}:
                self.complaints.append(f"run {number}, {name}: {check}")
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.nan_to_num(check.realised / check.bound, nan=0.0, posinf=0.0).max()
            key = (name, check.measure, check.source)
            if check.source:
                self.shares[key] = max(self.shares.get(key, 0.0), float(share))

    def __str__(self) -> str:
        lines = [f"{count:6d}  {what}" for what, count in sorted(self.counts.items())]
        lines += ["largest shares of the bounds"]
        lines += [
            f"  {share:6.3f}  {name}: {measure} ({source})"
            for (name, measure, source), share in sorted(self.shares.items())
        ]
        lines += [f"{len(self.complaints)} bounds exceeded without a failing assumption"]
        return "\n".join([*lines, *self.complaints])


def play(runs: int, seed: int, first: int = 0, *, show: bool = False) -> Tally:
    """So many runs, counted."""
    tally, began = Tally(), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coldq.Inexact)
        warnings.simplefilter("ignore", coldq.UndefinedRegret)
        for number in range(first, first + runs):
            tally.add(number, *a_run(seed, number))
            if show and (number + 1) % 500 == 0:
                print(f"{number + 1} runs, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    given = parser.parse_args()
    tally = play(given.runs, given.seed, given.first, show=True)
    print(tally)
    return 1 if tally.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
