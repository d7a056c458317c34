"""Odd arguments for every public entry: what comes back is an answer or a ``coldq.Error``.

``python -m tests.fuzz --calls 20000`` makes that many calls; the tests make a share of them. Each
call draws an entry of the library and its arguments: some good, some of a wrong type, shape or
size. It may return, or raise a :class:`coldq.Error` whose message is a sentence. Python's own
TypeError about a call's signature is fine, any other error is not, nor is a warning of NumPy's.
"""

from __future__ import annotations

import argparse
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse

import coldq
from coldq import bounds, networks, schedules
from coldq.learners import ALGORITHMS

SIGNATURE = re.compile(
    r"unexpected keyword|required (positional|keyword)|positional argument|multiple values"
)
X = coldq.Box(0.0, 1.0, dim=2)
LOSS, ROW = coldq.Linear([1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [1.0])
FEEDBACK = coldq.Feedback(LOSS, ROW)
PROBLEM = coldq.problems.OnlineLinear(horizon=4)
LEARNERS = [
    coldq.COLDQ(X, horizon=10),
    coldq.COLDQ(X, alpha=lambda t: np.sqrt(t), eta=0.1, gamma=1.0),
    coldq.COLDQDoubling(X),
    coldq.COLDQExpert(X, 10),
    coldq.RECOO(X),
    coldq.Yi2021(X, 10, alpha0=1.0, gamma0=1.0),
    coldq.Yi2023.from_exponents(X, a=1.0, b=1.0, g=1.0),
    coldq.SinhaVaze(X, 10, lipschitz=1.0),
    coldq.SarkarSinha2025(X, lipschitz=1.0),
    coldq.LekeufackJordan2024(X, lipschitz=1.0),
    coldq.SupanthaSinha2026(X, 10, lipschitz=1.0),
    coldq.SupanthaSinha2026ProjectionFree(X, 10),
    coldq.NestedProjections(X, eta=0.1),
    coldq.Switch(X, 10, lipschitz=1.0),
    coldq.Wang2023(X, 10, 1, alpha=1.0, eta=1.0, gamma=1.0),
    coldq.Jenatton2016(X, lipschitz=1.0),
    coldq.CLASP(X, eta=0.1),
    coldq.OGD(X, eta=0.1),
    coldq.PolyakFeasibility(X, eta=0.1, rho=0.1),
    coldq.MOSP(X, 10),
    coldq.YuNeely2020(X, 10, lipschitz=1.0),
    coldq.YuNeelyWei2017(X, 10),
    coldq.Mahdavi2012(X, 10, eta=0.1, delta=1.0),
    coldq.YuanLamperski2018(X, 10, eta=0.1, sigma=1.0),
    coldq.Ader(X, 10, gradient_bound=1.0),
    coldq.Decentralised(coldq.COLDQ(X, horizon=10), np.eye(2)),
]
STATES = [learner.init(1) for learner in LEARNERS] + [a.init(1, batch=(3,)) for a in LEARNERS]
TRACE = coldq.simulate(coldq.COLDQ.for_problem(PROBLEM), PROBLEM, seeds=[0, 1])
BEST = coldq.dynamic_comparator(PROBLEM, [0, 1])


class Labelled:
    """A Series as far as it matters: numbers under names."""

    index, values = ("b", "a"), (1.0, 2.0)

    def to_numpy(self) -> np.ndarray:
        return np.array(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype)


class Nothing:
    """An object with no more than a name."""


class Own:
    """A problem of the user's own, which reveals what it is given."""

    domain, horizon, n_constraints = X, 4, 1

    def __init__(self, revealed: Any) -> None:
        self.revealed = revealed

    def start(self, seeds: Any) -> Own:
        return self

    def reveal(self, t: int, x: Any) -> Any:
        return self.revealed


ODD: list[Any] = [
    *(None, 3, -1, 0, 2.5, -0.5, True, np.nan, np.inf, -np.inf, 1e308, 5e-324, 1e-300, 1e16),
    *("abc", "", "0.5", b"x", 1j, 10**30, Decimal("0.5"), Fraction(1, 2), Nothing(), Nothing),
    *([], [[]], [[1.0], [1.0, 2.0]], {}, {"a": 1}, {1, 2}, range(2), (), [None, 1.0], ["a", "b"]),
    *(np.array([1.0 + 2.0j, 0.0]), np.ma.array([1.0, 2.0], mask=[False, True]), Labelled()),
    *(np.zeros((0, 2)), np.ones((2, 3, 2)), np.ones((1, 3)), np.ones(3), np.ones((3, 2))),
    *(np.array(["a", "b"]), np.array([None, 1.0], dtype=object), np.datetime64("2020-01-01")),
    *(np.full(2, 1e308), np.full(2, 5e-324), np.array([np.nan, 1.0]), np.array([1.0, np.inf])),
    *(np.float32(0.5), np.array(2), np.array([1, 2]), np.array([True, False]), -np.ones(2)),
    *(np.ones((2, 1, 2, 2)), np.array([[1e200, 1e-200]]), [1e-320, 1e300], np.inf * np.ones(2)),
    *(lambda: 1.0, lambda x: x, lambda x: "no", lambda t: -1.0, lambda t: [1.0, [2.0]], iter([1])),
    *(X, LOSS, ROW, FEEDBACK, PROBLEM, TRACE, coldq.Box, coldq.Linear, coldq.COLDQ, np, STATES[0]),
    *LEARNERS[:2],
]

DOMAINS = [
    X,
    coldq.Simplex(2),
    coldq.Ball([0.0, 0.0], 1.0),
    coldq.Polytope([[1.0, 1.0]], [1.0], lower=0.0, upper=1.0),
    coldq.Product(coldq.Ball([0.0], 1.0), coldq.Box(0.0, 1.0, dim=1)),
    coldq.Box(-np.inf, np.inf, dim=2),
    coldq.Box(np.zeros((3, 2)), 1.0),
    coldq.CustomDomain(2, lambda x: np.clip(x, 0.0, 1.0), 2.0),
    coldq.Box(0.0, 1.0, dim=5),
]
CONSTRAINTS = [
    ROW,
    None,
    coldq.Affine(np.ones((3, 1, 2)), np.ones(1)),
    coldq.Affine.from_measurement([0.0, 0.0], [1.0], [[1.0, 1.0]]),
    coldq.SparseAffine(sparse.csr_array(np.ones((1, 2))), [1.0]),
    coldq.QuadraticConstraint(np.eye(2)[None], [[0.0, 0.0]], [1.0]),
    coldq.MaxAffine([[[1.0, 0.0], [0.0, 1.0]]], [[0.5, 0.5]]),
    coldq.LogCapacity(1.0, [1.0, 1.0], [1.0, 1.0]),
    coldq.Convex(lambda x: [x @ x - 1.0], lambda x: [2.0 * x], lambda x: [2.0 * np.eye(2)]),
    coldq.Convex(lambda x: [[1.0], [1.0, 2.0]], lambda x: "no"),
    coldq.Convex(lambda x: [1j], lambda x: [2.0 * x]),
    coldq.Stacked(ROW, coldq.QuadraticConstraint(np.eye(2)[None], [[0.0, 0.0]], [1.0])),
    coldq.Affine([[1.0, 1.0, 1.0]], [1.0]),
    coldq.Affine([[1e300, -1e300]], [1e-300]),
]
LOSSES = [
    LOSS,
    coldq.LeastSquares([[1.0, 1.0]], [1.0]),
    coldq.Quadratic(np.eye(2), [1.0, 0.0]),
    coldq.Smooth(lambda x: x @ x, lambda x: 2.0 * x),
    coldq.Smooth(lambda x: "no", lambda x: [1.0, [2.0]]),
    coldq.Smooth(lambda x: 1j, lambda x: 1j * x),
    coldq.GradientAt([0.0, 0.0], [1.0, 1.0]),
    coldq.Linear([1.0, 2.0, 3.0]),
    coldq.Linear([1e308, -1e308]),
    coldq.Linear(np.ones((5, 2))),
]
POINTS = [np.zeros(2), [0.5, 0.5], np.ones((3, 2)), (1, 0)]
NUMBERS = [1.0, 0.5, 2, np.float64(0.1), 0.3]
FUNCTIONS = [lambda x: x, lambda x: np.zeros(2), lambda x: [1.0], lambda x: 1.0]

FEEDBACKS = [FEEDBACK, *(coldq.Feedback(f, g) for f in LOSSES for g in CONSTRAINTS)]
PROBLEMS = [PROBLEM, coldq.problems.TimeVarying(horizon=3), *(Own(f) for f in (3, *FEEDBACKS))]

# What fits a parameter of this name; of others, a number does.
GOOD: dict[str, list[Any]] = {
    "domain": DOMAINS, "domains": DOMAINS, "lower": [0.0, [0.0, 0.0], -np.inf], "upper": [1.0],
    "dim": [2, 1], "center": POINTS, "radius": [1.0], "total": [1.0], "cap": [0.7, np.inf],
    "A": [[[1.0, 1.0]], np.ones((3, 1, 2))], "b": [[1.0], [0.5]], "A_eq": [[[1.0, -1.0]]],
    "b_eq": [[0.0]], "project": FUNCTIONS, "diameter": [2.0], "start": POINTS,
    "c": [[1.0, 2.0]], "H": [[[1.0, 0.0]]], "y": [[1.0]], "P": [np.eye(2), np.eye(2)[None]],
    "q": [[1.0, 0.0], [[1.0, 0.0]]], "r": [0.0, [1.0]], "value_function": FUNCTIONS,
    "gradient_function": FUNCTIONS, "jacobian_function": FUNCTIONS,
    "hessian_function": [None, *FUNCTIONS], "vectorised": [True, False], "x": POINTS,
    "gradient": [*POINTS, "own", "shared"], "value": [1.0, [1.0]], "jacobian": [[[1.0, 1.0]]],
    "demand": [1.0], "scale": [1.0, [1.0, 1.0]], "rate": [[1.0, 1.0]], "slopes": [[[[1.0, 0.0]]]],
    "parts": CONSTRAINTS, "exponent": [0.5, -1.0], "function": FUNCTIONS, "t": [1.0, [1.0, 2.0]],
    "horizon": [10, 100], "n_constraints": [1, 0, 3], "batch": [(), (3,), (2, 2)],
    "loss": LOSSES, "constraint": CONSTRAINTS, "slot": [None, 1, [1, 1, 1]], "state": STATES,
    "feedback": FEEDBACKS,
    "learner": LEARNERS, "problem": PROBLEMS, "seeds": [[0], range(2)], "delay": [0, 1],
    "keep": [(), "decisions", ["queue"]], "progress": [False], "decisions": [None],
    "trace": [TRACE], "comparator": [None, BEST], "norm": [1, 2, np.inf],
    "running_total": [np.arange(1.0, 9.0)], "cumulative": [True, False], "weights": [1.0, [2.0]],
    "multiplier_upper": [1.0, [2.0]], "multiplier_lower": [0.0],
    "mixing": [np.eye(2)], "graph": [networks.ring(3)], "n": [3, 2],
    "reading": ["drift"], "divergence": ["euclidean"], "path_exponent": [0.0, 0.5],
    "steps": [np.ones(10)], "moves": [np.zeros(10)], "indices": [[0, 2], 1, [True, False, True]],
    "members": STATES, "probability": [0.5], "rng": [np.random.default_rng(0)],
    "matrices": [np.eye(2)], "arrays": [state.to_arrays() for state in STATES],
    "strict": [True, False], "alpha": [1.0, 0.5, schedules.Power(0.5)], "eta": [0.1, 0.5],
    "lipschitz": [1.0], "mu": [0.0, 1.0], "tolerance": [0.0, 1e-9],
}  # fmt: skip


def methods(kinds: list[Any], *names: str) -> dict[str, Callable[..., Any]]:
    """The methods of these names of some objects, by a name for each."""
    return {
        f"{type(thing).__name__}.{name} ({k})": getattr(thing, name)
        for k, thing in enumerate(kinds)
        for name in names
        if hasattr(thing, name)
    }


def entries() -> dict[str, Callable[..., Any]]:
    """Every public entry that is called with a user's data, by name."""
    found: dict[str, Callable[..., Any]] = {}
    learners = [*ALGORITHMS, coldq.Decentralised]
    skipped = {"citation", "estimate_constants"}
    for name in coldq.__all__:
        thing = getattr(coldq, name)
        if not callable(thing) or name in skipped:
            continue
        if isinstance(thing, type):
            if issubclass(thing, BaseException) or name in (
                "BoundReport",
                "EstimatedConstants",
                "Trace",
            ):
                continue
            if name in ("Step", "APrioriBounds", "Comparator", "Comparison", "ConstraintVariation"):
                continue  # what is returned, and nobody makes
        found[name] = thing
    found |= {"estimate_constants": coldq.estimate_constants, "citation": coldq.citation}
    for kind in learners:
        for name in ("for_problem", "strongly_convex", "scaled", "anytime", "safe"):
            if hasattr(kind, name):
                found[f"{kind.__name__}.{name}"] = getattr(kind, name)
    for name in ("equality", "between", "from_measurement"):
        found[f"Affine.{name}"] = getattr(coldq.Affine, name)
    for name in ("ball", "diagonal", "low_rank"):
        found[f"QuadraticConstraint.{name}"] = getattr(coldq.QuadraticConstraint, name)
    for name in ("TimeVarying", "OnlineQuadratic", "OnlineLinear", "JobScheduling", "from_table"):
        found[f"problems.{name}"] = getattr(coldq.problems, name)
    found |= {name: getattr(schedules, name) for name in ("Power", "Constant", "Custom")}
    found |= methods([schedules.Custom(lambda t: t)], "__call__")
    found |= methods(DOMAINS, "project", "contains")
    found |= methods(LOSSES, "value", "gradient")
    found |= methods([g for g in CONSTRAINTS if g is not None], "value", "jacobian")
    found |= methods(LEARNERS, "init", "update", "from_arrays")
    found |= methods([LEARNERS[0], LEARNERS[3]], "promise")
    found |= methods(STATES, "take", "put")
    found |= methods([TRACE], "plot") | {"Trace.load": coldq.Trace.load}
    theorems = {f"bounds.{name}": getattr(bounds, name) for name in bounds.__all__}
    found |= {name: thing for name, thing in theorems.items() if inspect.isfunction(thing)}
    found |= {
        f"networks.{name}": getattr(networks, name)
        for name in ("path", "ring", "complete", "metropolis", "uniform", "Alternating", "random")
    }
    return found


ENTRIES = entries()


@st.composite
def calls(draw: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """An entry, and arguments for it."""
    rng = draw(st.randoms(use_true_random=True))  # seeded by hypothesis, and evenly spread
    name = rng.choice(sorted(ENTRIES))
    odd = rng.choice((0.15, 0.4))
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}

    def value(of: str) -> Any:
        return rng.choice(ODD if rng.random() < odd else GOOD.get(of, NUMBERS))

    for parameter in inspect.signature(ENTRIES[name]).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments += [value(parameter.name) for _ in range(rng.randrange(3))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            for extra in rng.sample(EXTRA, rng.randrange(3)):
                keywords[extra] = value(extra)
        elif parameter.default is parameter.empty or rng.random() < 0.5:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                arguments.append(value(parameter.name))
            else:
                keywords[parameter.name] = value(parameter.name)
    return name, arguments, keywords


EXTRA = ["epsilon", "gradient_bound", "constraint_bound", "lipschitz", "horizon", "alpha", "odd"]


def complaint(name: str, arguments: list[Any], keywords: dict[str, Any]) -> str | None:
    """What is wrong with how an entry answered, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ENTRIES[name](*arguments, **keywords)
        except coldq.Error as error:
            words = str(error)
            if len(words) < 15 or len(words.split()) < 4:
                return f"raised {error!r}, which is no sentence"
        except TypeError as error:
            if not SIGNATURE.search(str(error)):
                return f"raised {error!r}"
        except Exception as error:
            return f"raised {error!r}"
    for warning in caught:
        own = warning.filename == __file__  # one of the functions above, as a user's may warn
        raised = re.search(r"(\w+) encountered in (\w+)", str(warning.message))
        # Prices near 1e308 overflow in a learner's formula: silence would cost every update a
        # microsecond, and NumPy's word on such data is no worse than ours.
        if raised and raised[1] == "overflow" and "learners" in warning.filename:
            continue
        if not issubclass(warning.category, OURS) and not own:
            return f"warned {warning.category.__name__}: {warning.message}"
    return None


OURS = (
    coldq.PastHorizon,
    coldq.SharedGradient,
    coldq.UndefinedRegret,
    coldq.UnknownLearner,
    coldq.WeakPrice,
)


def shown(name: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    parts = [f"{a!r:.80}" for a in arguments] + [f"{k}={v!r:.80}" for k, v in keywords.items()]
    return f"{name}({', '.join(parts)})"


def run(count: int, seed: int = 0) -> dict[str, str]:
    """Make so many calls; the complaints, one example for each kind."""
    from hypothesis import seed as seeded

    found: dict[str, str] = {}
    made: Counter[str] = Counter()

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def one(call: Any) -> None:
        made["calls"] += 1
        wrong = complaint(*call)
        if wrong is not None:
            entry = re.sub(r" \(.*|.*\.", "", call[0])
            found.setdefault(f"{entry}: {wrong:.120}", f"{shown(*call)} {wrong}")

    one()
    found.pop("", None)
    print(f"{made['calls']} calls of {len(ENTRIES)} entries, {len(found)} kinds of complaint")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given_ = parser.parse_args()
    found = run(given_.calls, given_.seed)
    for example in found.values():
        print(example)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
