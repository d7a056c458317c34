"""Job scheduling: the data in the package, what the problem reveals, and runs on it."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files

import numpy as np
import pytest

import coldq
from coldq.problems import JobScheduling, ZonalPrices
from coldq.problems.job_scheduling import request_trace
from coldq.problems.nyiso import may_2017
from coldq.slot.schedules import Power

TEN = ("CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD VL", "LONGIL", "MHK VL", "MILLWD", "N.Y.C.",
       "WEST")  # fmt: skip
GREATEST = 400.0 * np.log(4001.0)  # what 100 centres at full power can serve


def raw(name: str) -> list[dict[str, str]]:
    """A file of the package, read without the package."""
    packed = files("coldq.problems").joinpath("data", name).read_bytes()
    return list(csv.DictReader(io.StringIO(gzip.decompress(packed).decode())))


PRICES = raw("nyiso-lbmp-5min-2017-05-01_2017-05-10.csv.gz")
REQUESTS = [int(r["requests"]) for r in raw("nasa-http-requests-5min-1995-07-01_1995-07-10.csv.gz")]


def test_the_prices_are_those_of_the_file_for_ten_zones_of_ten_centres() -> None:
    problem = JobScheduling()
    stream = problem.start([0])
    assert (problem.horizon, problem.prices.zones, len(PRICES)) == (2880, TEN, 2880)
    assert problem.domain == coldq.Box(0.0, 1000.0, dim=100)
    assert not problem.domain.start().any()
    for t in (1, 2, 1441, 2880):
        c = stream.reveal(t, None).loss.c
        expected = [float(PRICES[t - 1][zone]) for zone in TEN for _ in range(10)]
        np.testing.assert_array_equal(c, expected)
        assert str(problem.prices.stamps[t - 1]).replace("T", " ") == PRICES[t - 1]["timestamp"]


def test_hourly_means_are_those_that_nyiso_published() -> None:
    # Of NYISO's hourly file; an hour's mean is that of the stamps hh:00 to hh:55.
    published = {
        "2017-05-01 01": {"CAPITL": 23.6492, "HUD VL": 24.4275, "NORTH": 21.3792, "WEST": 21.7283},
        "2017-05-01 02": {"CENTRL": 10.8125, "MHK VL": 10.9442, "MILLWD": 20.9017},
        "2017-05-10 22": {"GENESE": 25.2992, "DUNWOD": 27.7633, "LONGIL": 54.63, "N.Y.C.": 28.5942},
    }
    stamps = np.array([str(s).replace("T", " ") for s in may_2017().stamps])
    for hour, means in published.items():
        inside = np.char.startswith(stamps, hour + ":")
        assert inside.sum() == 12
        for zone, mean in means.items():
            prices = may_2017().only([zone]).values[inside]
            np.testing.assert_allclose(prices.mean(), mean, atol=0.006)


def test_zones_unit_and_centres_are_parameters() -> None:
    problem = JobScheduling(50, zones=["WEST", "NORTH"], price_unit="$/kWh", centres_per_zone=3)
    c = problem.start([0]).reveal(50, None).loss.c
    west, north = (float(PRICES[49][zone]) / 1000.0 for zone in ("WEST", "NORTH"))
    np.testing.assert_array_equal(c, [west] * 3 + [north] * 3)
    assert problem.domain.dim == 6
    assert (c < 0.0).any() == (min(west, north) < 0.0)
    assert (may_2017().only(["NORTH"]).values < -2000.0).any()  # negative prices are kept


def demand_of(problem: JobScheduling, seeds: Iterable[int]) -> np.ndarray:
    return problem.start(seeds).constraint.demand


def test_the_constraint_is_arrivals_less_capacity() -> None:
    stream, rng = JobScheduling(20).start([3, 4]), np.random.default_rng(0)
    x = rng.uniform(0.0, 1000.0, (2, 100))
    for t in range(1, 21):
        expected = stream.constraint.demand[t - 1] - (4.0 * np.log(1.0 + 4.0 * x)).sum(axis=1)
        np.testing.assert_allclose(stream.reveal(t, x).constraint.value(x)[:, 0], expected)
    at_zero = [stream.reveal(t, x).constraint.value(np.zeros((2, 100)))[:, 0] for t in (1, 2)]
    np.testing.assert_array_equal(at_zero, stream.constraint.demand[:2])  # nothing is carried over


def test_arrivals_are_poisson_and_independent() -> None:
    demand = demand_of(JobScheduling(), range(40))
    assert demand.shape == (2880, 40)
    np.testing.assert_array_equal(demand, np.floor(demand))
    size = demand.size
    # Mean and variance are 2500; six standard errors.
    assert abs(demand.mean() - 2500.0) < 6.0 * np.sqrt(2500.0 / size)
    assert abs(demand.var() - 2500.0) < 6.0 * 2500.0 * np.sqrt(2.0 / size)
    correlation = np.corrcoef(np.stack([demand[:-1, 0], demand[1:, 0], demand[:-1, 1]]))
    assert np.abs(correlation - np.eye(3)).max() < 0.1
    few = demand_of(JobScheduling(500, mean_arrivals=7.0), [0])
    assert abs(few.mean() - 7.0) < 6.0 * np.sqrt(7.0 / 500)


def test_a_seed_s_arrivals_are_the_same_beside_others_and_with_fewer_slots() -> None:
    together = demand_of(JobScheduling(), [5, 6, 7])
    np.testing.assert_array_equal(together[:, 1], demand_of(JobScheduling(), [6])[:, 0])
    np.testing.assert_array_equal(together[:33], demand_of(JobScheduling(33), [5, 6, 7]))
    assert (together[:, 0] != together[:, 1]).mean() > 0.9


def test_requests_are_the_trace_scaled_to_the_mean_for_every_seed() -> None:
    assert len(REQUESTS) == 2880
    np.testing.assert_array_equal(request_trace(), REQUESTS)
    demand = demand_of(JobScheduling(arrivals="requests"), [0, 1])
    np.testing.assert_allclose(demand[:, 0], np.array(REQUESTS) * 2500.0 * 2880 / sum(REQUESTS))
    np.testing.assert_array_equal(demand[:, 0], demand[:, 1])
    np.testing.assert_allclose(demand.mean(), 2500.0)
    # The scale is that of the whole trace, however many slots are used.
    np.testing.assert_array_equal(
        demand_of(JobScheduling(100, arrivals="requests"), [0]), demand[:100, :1]
    )
    assert (demand[:, 0] > GREATEST).sum() == 686


@pytest.mark.parametrize(
    "problem",
    [JobScheduling(), JobScheduling(700, zones=["NORTH", "WEST"], price_unit="$/kWh"),
     JobScheduling(arrivals="requests"), JobScheduling(60, mean_arrivals=3.0),
     JobScheduling(60, domain=coldq.Box(1.0, 30.0, dim=100))],
)  # fmt: skip
def test_constants_bound_what_is_revealed_and_are_attained_where_exact(problem) -> None:
    known, rng, X = problem.constants, np.random.default_rng(0), problem.domain
    ends = np.stack([X.lower, X.upper])
    x = np.concatenate([ends, rng.uniform(X.lower, X.upper, (4, X.dim))])[:, None, :]
    G = D = 0.0
    stream = problem.start(range(3))
    for t in range(1, problem.horizon + 1):
        revealed = stream.reveal(t, None)
        G = max(G, np.abs(revealed.constraint.value(x)).max())
        D = max(D, np.linalg.norm(revealed.loss.gradient(x[:, 0]), axis=-1).max())
    L = np.linalg.norm(revealed.constraint.jacobian(x), axis=-1).max()
    assert known.diameter == np.linalg.norm(X.upper - X.lower)
    np.testing.assert_allclose(known.gradient_bound, D, rtol=1e-12)
    np.testing.assert_allclose(known.constraint_lipschitz, L, rtol=1e-12)
    assert G * (1.0 - 1e-12) <= known.constraint_bound <= 1.15 * G
    if problem.arrivals == "requests":
        np.testing.assert_allclose(known.constraint_bound, G, rtol=1e-12)
        assert not known.note
    else:
        assert set(known.note) == {"constraint_bound"}


def test_the_tails_of_arrivals_are_as_rare_as_the_note_says() -> None:
    from scipy.special import pdtr, pdtrc

    for mean, slots in ((2500.0, 2880), (400.0, 50)):
        small = coldq.Box(0.0, 1e-9, dim=100)  # |g| is lambda there
        problem = JobScheduling(slots, mean_arrivals=mean, domain=small)
        most = problem.constants.constraint_bound
        assert slots * pdtrc(most, mean) < 1e-9
        # At full power |g| is capacity less arrivals: a box that makes this the larger.
        full = JobScheduling(slots, mean_arrivals=mean, domain=coldq.Box(900.0, 1e99, dim=100))
        least = 400.0 * np.log(4e99) - full.constants.constraint_bound
        assert slots * pdtr(least - 1e-6, mean) < 1e-9


def transcription(learner: str, prices: np.ndarray, arrivals: np.ndarray):
    """COLDQ or RECOO with the paper's parameters, by bisection on the one multiplier."""

    def prox(d, alpha, center, weight, demand):
        def x(mu):  # alpha y^2 / 2 + (d - alpha y0 / 2) y = 16 mu, with y = 1 + 4 x
            b = d - 0.5 * alpha * (1.0 + 4.0 * center)
            return np.clip(
                ((np.sqrt(b * b + 32.0 * alpha * mu) - b) / alpha - 1.0) / 4.0, 0.0, 1000.0
            )

        def g(mu):
            return demand - (4.0 * np.log(1.0 + 4.0 * x(mu))).sum()

        if g(0.0) <= 0.0:
            return x(0.0)
        if g(weight) >= 0.0:
            return x(weight)
        low, high = 0.0, weight
        for _ in range(70):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if g(middle) > 0.0 else (low, middle)
        return x(high)

    T = len(arrivals)
    x, cost, delayed = np.zeros(100), [], []
    queue = 0.5 * T if learner == "COLDQ" else 0.0
    for t, (c, demand) in enumerate(zip(prices, arrivals, strict=True), start=1):
        late = max(demand - (4.0 * np.log(1.0 + 4.0 * x)).sum(), 0.0)
        cost.append(c @ x)
        delayed.append(late)
        if learner == "COLDQ":
            if t > 1:
                queue = max((1.0 - 1.0 / T) * queue + late, 0.5 * T)
            x = prox(c, np.sqrt(t), x, queue, demand)
        else:
            x = prox(c, 0.7 * np.sqrt(t), x, t**0.51 * queue, demand)
            left = max(demand - (4.0 * np.log(1.0 + 4.0 * x)).sum(), 0.0)
            queue = max(queue + t**0.51 * left, np.sqrt(t + 1.0))
    return np.array(cost), np.array(delayed)


@pytest.mark.parametrize("unit", ["$/MWh", "$/kWh"])
def test_runs_agree_with_a_transcription_that_shares_no_code(unit) -> None:
    problem, seeds = JobScheduling(300, price_unit=unit), [0, 1]
    scale = 1.0 if unit == "$/MWh" else 1000.0
    prices = np.array([[float(r[z]) / scale for z in TEN for _ in range(10)] for r in PRICES[:300]])
    demand = demand_of(problem, seeds)
    for name, learner in (
        ("COLDQ", coldq.COLDQ.for_problem(problem, epsilon=0.5)),
        ("RECOO", coldq.RECOO(problem.domain, epsilon=0.01, alpha=Power(0.5, 0.7))),
    ):
        trace = coldq.simulate(learner, problem, seeds)
        for k in range(2):
            cost, delayed = transcription(name, prices, demand[:, k])
            np.testing.assert_allclose(trace.loss[k], cost, rtol=1e-6, atol=1e-6 * cost.max())
            np.testing.assert_allclose(trace.violation[k, :, 0], delayed, atol=1e-5)


def test_coldq_costs_less_than_recoo_and_both_delay_few_jobs() -> None:
    for unit, worst in (("$/MWh", 0.07), ("$/kWh", 0.04)):
        problem = JobScheduling(price_unit=unit)
        ours = coldq.simulate(coldq.COLDQ.for_problem(problem, epsilon=0.5), problem, range(3))
        recoo = coldq.RECOO(problem.domain, epsilon=0.01, alpha=Power(0.5, 0.7))
        theirs = coldq.simulate(recoo, problem, range(3))
        saving = 1.0 - ours.loss.mean() / theirs.loss.mean()
        assert worst < saving < 0.16
        for trace in (ours, theirs):
            assert (trace.violation.mean(axis=(1, 2)) < 0.004 * 2500.0).all()
            assert (trace.violation[:, 0, 0] == trace.constraint[:, 0, 0]).all()  # x_1 = 0
    assert 360e3 < 1000.0 * ours.loss.mean() < 500e3


def water_filling(c: np.ndarray, demand: float) -> float:
    """The least cost of serving the demand: x_i = 4 mu / c_i - 1/4 within bounds, by bisection."""

    def x(mu):
        return np.where(c <= 0.0, 1000.0, np.clip(4.0 * mu / np.abs(c) - 0.25, 0.0, 1000.0))

    low, high = 0.0, 1e6 * np.abs(c).max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        enough = (4.0 * np.log(1.0 + 4.0 * x(middle))).sum() >= demand
        low, high = (low, middle) if enough else (middle, high)
    return float(c @ x(high))


def test_the_best_decisions_are_those_of_water_filling() -> None:
    problem = JobScheduling(10)
    best, stream = coldq.dynamic_comparator(problem, seeds=[0]), problem.start([0])
    assert best.feasible.all()
    costs, demand = stream.loss.c, stream.constraint.demand
    expected = [water_filling(c, d) for c, d in zip(costs, demand[:, 0], strict=True)]
    np.testing.assert_allclose(best.loss[0], expected, rtol=1e-9)
    fixed = coldq.static_comparator(problem, seeds=[0])
    total = water_filling(costs.sum(axis=0), demand.max())
    np.testing.assert_allclose(fixed.loss.sum(), total, rtol=1e-9)


def test_the_constraint_varies_as_the_arrivals_do() -> None:
    problem = JobScheduling(300)
    variation = coldq.constraint_variation(problem, [0, 1])
    assert variation.exact
    steps = np.abs(np.diff(demand_of(problem, [0, 1]), axis=0)).sum(axis=0)
    np.testing.assert_allclose(variation.total, steps)


def test_provenance_says_what_is_published_and_what_is_not() -> None:
    first, real, made, left_out, drawn = JobScheduling().provenance
    assert "NYISO real-time zonal LBMP (P-24A)" in first
    assert real.startswith("LONGIL, N.Y.C., WEST: the published five-minute prices")
    assert made.startswith(
        "CAPITL, CENTRL, DUNWOD, GENESE, HUD VL, MHK VL, MILLWD: reconstructed within the hour"
    )
    assert left_out.startswith("NORTH is left out") and "this project's" in left_out
    assert drawn == "Arrivals: drawn from Poisson(2500) for each seed."
    only = JobScheduling(zones=["WEST"], price_unit="$/kWh", arrivals="requests").provenance
    assert not any("reconstructed" in s or "left out" in s for s in only)
    assert any("$/kWh" in s for s in only)
    assert any("NASA-HTTP" in s and "the same for every seed" in s for s in only)
    assert any("NORTH, WEST: the published" in s for s in JobScheduling(
        zones=["WEST", "NORTH"]).provenance)  # fmt: skip


def test_prices_of_one_s_own_take_the_place_of_nyiso_s() -> None:
    values = np.arange(12.0).reshape(4, 3)
    own = ZonalPrices(["A", "B", "C"], values, first=datetime(2024, 1, 1), source="Ours.")
    problem = JobScheduling(prices=own, centres_per_zone=2)
    assert (problem.horizon, problem.domain.dim) == (4, 6)
    np.testing.assert_array_equal(problem.start([0]).reveal(2, None).loss.c, [3, 3, 4, 4, 5, 5])
    assert JobScheduling(prices=own, zones=["C"]).prices.zones == ("C",)
    assert problem.provenance[0] == "Ours."


def test_job_scheduling_is_a_value() -> None:
    assert JobScheduling() == JobScheduling(2880)
    assert hash(JobScheduling()) == hash(JobScheduling(2880))
    assert pickle.loads(pickle.dumps(JobScheduling(9))) == JobScheduling(9)
    others = [JobScheduling(9, **{name: value}) for name, value in [
        ("price_unit", "$/kWh"), ("arrivals", "requests"), ("mean_arrivals", 10.0),
        ("zones", ["WEST"]), ("centres_per_zone", 2)]]  # fmt: skip
    assert len({JobScheduling(9), JobScheduling(10), *others}) == 7
    assert repr(JobScheduling(9)).startswith("JobScheduling(horizon=9, prices=ZonalPrices(zones=")
    with pytest.raises(ValueError, match="read-only"):
        may_2017().values[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        request_trace()[0] = 1.0


def test_bad_job_scheduling_gets_a_sentence() -> None:
    long = ZonalPrices(["A"], np.ones((3000, 1)), first=datetime(2024, 1, 1), source="Ours.")
    for parameters, words in [
        ({"horizon": 1}, "horizon must be a whole number, at least 2"),
        ({"horizon": 2881}, "horizon is 2881, but the prices have only 2880 slots"),
        ({"prices": long, "arrivals": "requests"},
         "horizon is 3000, but the request trace has only 2880 slots"),
        ({"price_unit": "EUR"}, "price_unit must be \\$/MWh or \\$/kWh, but is 'EUR'"),
        ({"arrivals": "none"}, "arrivals must be poisson or requests, but is 'none'"),
        ({"mean_arrivals": 0.0}, "mean_arrivals must be positive"),
        ({"mean_arrivals": [1.0, 2.0]}, "mean_arrivals must be one number"),
        ({"mean_arrivals": 1e300}, "mean_arrivals must be one number, at most 1e12"),
        ({"zones": ["PJM"]}, "zones may name CAPITL, .*, but has 'PJM'"),
        ({"zones": "WEST"}, "zones must be different names"),
        ({"centres_per_zone": 0}, "centres_per_zone must be a whole number"),
        ({"prices": np.ones((5, 1))}, "prices must be ZonalPrices, but is a ndarray"),
        ({"domain": coldq.Box(0.0, 1.0, dim=99)}, "has 100 coordinates, but the domain has 99"),
        ({"domain": coldq.Box(-1.0, 1.0, dim=100)}, "the capacity is defined for x > -0.25"),
    ]:  # fmt: skip
        with pytest.raises(coldq.InvalidInput, match=words):
            JobScheduling(**parameters)


def test_arrivals_of_the_trace_are_the_same_for_every_seed_and_it_says_so() -> None:
    for arrivals, differ in (("poisson", True), ("requests", False)):
        problem = JobScheduling(horizon=3, arrivals=arrivals)
        demand = problem.start([0, 1]).constraint.demand
        assert problem.seeds_differ is differ is bool((demand[:, 0] != demand[:, 1]).any())
