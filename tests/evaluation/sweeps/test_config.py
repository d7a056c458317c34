"""What a sweep is asked for: grids as they are written, and a sentence for what cannot be meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.evaluation.sweeps.config import SWEEP_KEYS, read_config
from coldq.evaluation.sweeps.grid import combinations, values_of
from tests.evaluation.sweeps.counted import Counted
from tests.evaluation.sweeps.pages import PAGE, blocks

GOOD = {"problems": ["linear"], "learners": ["COLDQ"], "seeds": 2}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, [3]),
        ([1, 0.5], [1, 0.5]),
        ({"from": 0, "to": 1, "count": 5}, [0.0, 0.25, 0.5, 0.75, 1.0]),
        ({"from": 1, "to": 9, "count": 3}, [1, 5, 9]),
        ({"from": 0.001, "to": 10, "count": 5, "log": True}, [0.001, 0.01, 0.1, 1.0, 10.0]),
        ({"from": 4, "to": 1, "count": 3, "log": True}, [4, 2, 1]),
        ([{"from": 1, "to": 2, "count": 2}, 7], [1, 2, 7]),
        ({"power": 0.5}, [{"type": "Power", "exponent": 0.5, "scale": 1.0}]),
    ],
)
def test_a_value_a_list_a_range_and_a_log_range_are_written_out(given, expected) -> None:
    found = values_of("here", given)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


def test_a_grid_has_every_combination_once_in_order() -> None:
    found = list(combinations("here", {"a": [1, 2], "b": {"power": [0.25, 0.5], "scale": [1, 3]}}))
    assert len(found) == 8
    assert [one["a"] for one in found] == [1] * 4 + [2] * 4
    assert [(one["b"]["exponent"], one["b"]["scale"]) for one in found[:4]] == [
        (0.25, 1), (0.25, 3), (0.5, 1), (0.5, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"problem": ["linear"]}, r"there is no key 'problem' \(did you mean 'problems'"),
        ({"learners": []}, "learners is empty, which leaves nothing to run"),
        ({"problems": ["liner"]}, r"problems 1: there is no problem 'liner' \(did you"),
        ({"learners": ["COLQD"]}, r"learners 1: there is no learner 'COLQD' \(did you"),
        (
            {"learners": ["OGD", {"learner": "COLDQ", "epsilom": 1}]},
            r"learners 2: there is no key 'epsilom' \(did you mean 'epsilon'",
        ),
        (
            {"problems": [{"problem": "linear", "horizn": 9}]},
            r"problems 1: there is no key 'horizn' \(did you mean 'horizon'",
        ),
        ({"problems": [{"problem": "linear", "horizon": 1}]}, "problems 1: horizon must be a"),
        ({"problems": ["nothing.toml"]}, "problems 1: nothing.toml: cannot be read"),
        ({"problems": ["__main__:problem"]}, "no other process; put it into a file of its own"),
        ({"learners": ["__main__:learner"]}, "no other process; put it into a file of its own"),
        ({"problems": ["no_such_module:problem"]}, "problems 1: no_such_module:problem could not"),
        ({"learners": [{"learner": "COLDQ", "epsilon": []}]}, "epsilon is an empty list"),
        ({"learners": [{"learner": "COLDQ", "epsilon": [1, 1]}]}, "epsilon names a value twice"),
        (
            {"learners": [{"learner": "COLDQ", "epsilon": {"from": 1, "too": 2}}]},
            r"epsilon: there is no key 'too' \(did you mean 'to'",
        ),
        ({"learners": [{"learner": "COLDQ", "epsilon": {"from": 1, "to": 2}}]}, "lacks count"),
        (
            {"learners": [{"learner": "COLDQ",
                           "epsilon": {"from": 0, "to": 2, "count": 3, "log": True}}]},
            "log = true needs ends above 0",
        ),
        ({"learners": [{"learner": "COLDQ", "epsilon": {"scale": 1}}]}, "epsilon must be a value"),
        ({"learners": [{"learner": "COLDQ", "epsilon": float("nan")}]}, "must be a number or a"),
        ({"learners": ["COLDQ", "coldq"]}, "learners has 'COLDQ' twice"),
        ({"learners": ["COLDQ", {"learner": "COLDQ", "epsilon": 1}]}, "different parameters"),
        ({"problems": ["linear", "linear"]}, "problems has 'linear' twice"),
        ({"seeds": 0}, "seeds must be a whole number, at least 1"),
        ({"seeds": [1, 1]}, "seeds has 1 twice, but each is run once"),
        ({"seeds": 100_000_000_000}, "seeds must be at most 10,000,000"),
        ({"seeds": {"from": 0, "to": 10**15}}, "seeds must be at most 10,000,000"),
        ({"seeds": range(10**30)}, "seeds must be at most 10,000,000"),
        ({"seeds": {"from": 5, "to": 4}}, "seeds from 5 to 4 are none"),
        ({"seeds": True}, "seeds must be how many, a list of them"),
        ({"seeds_a_task": 0}, "seeds_a_task must be a whole number"),
        ({"title": 3}, "title must be some text"),
        ({"problems": [coldq.problems.TimeVarying(9, agents=3)]}, "must have no agents"),
        (
            {"problems": [{"problem": coldq.problems.OnlineLinear(9), "horizon": 5}]},
            "problems 1: there is no key 'horizon'; there are problem, name$",
        ),
        (
            {"learners": [{"learner": coldq.COLDQ(coldq.Simplex(3), 9), "epsilon": 1}]},
            "learners 1: there is no key 'epsilon'; there are learner, name$",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_sentence_that_names_the_place(change, sentence) -> None:
    with pytest.raises(coldq.Error, match=sentence):
        read_config(None, {**GOOD, **change})


@pytest.mark.parametrize(
    ("learner", "taken", "others"),
    [("Yi2023", "a b c g k", "alpha"), ("PolyakFeasibility", "slack steepness", "rho"),
     ("COLDQ", "epsilon path_length", "mu")],
)  # fmt: skip
def test_keys_of_a_learner_are_those_that_its_for_problem_takes(learner, taken, others) -> None:
    given = {"learner": learner, **dict.fromkeys(taken.split(), 0.25)}
    (found,) = read_config({**GOOD, "learners": [given]}, {}).learners
    assert set(found.parameters) == set(taken.split())
    with pytest.raises(coldq.InvalidInput, match=f"there is no key '{others}'"):
        read_config({**GOOD, "learners": [{**given, others: 0.25}]}, {})


def test_a_sentence_begins_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_text("problems = ['linear']\nlearners = ['COLDQ']\nseed = 3\n")
    with pytest.raises(coldq.InvalidInput, match=r"tune.toml: there is no key 'seed' \(did you"):
        coldq.sweep(path)
    path.write_text("problems = [")
    with pytest.raises(coldq.NotReadable, match=r"tune.toml: is not TOML"):
        coldq.sweep(path)
    with pytest.raises(coldq.InvalidInput, match="a TOML file's path, or its keys, but this is a"):
        coldq.sweep(3)  # type: ignore[arg-type]


def test_a_table_is_found_beside_the_sweep_that_names_it(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "load.csv").write_text("price,load\n" + "3.0,5.0\n2.0,7.0\n" * 10)
    (inner / "load.toml").write_text(
        'decide = {grid = [0, 9]}\ncost = "price"\nrows = [{sum = "all", at_least = "load"}]\n'
    )
    (inner / "tune.toml").write_text(
        'problems = [{problem = "load.toml", horizon = [10, 20]}]\nlearners = ["COLDQ"]\n'
    )
    found = coldq.sweep(inner / "tune.toml")
    # A table shows every seed the same, so that one is played.
    assert sorted(found.to_pandas()["problem"]) == ["load (horizon=10)", "load (horizon=20)"]
    problem = coldq.problems.from_table(inner / "load.toml", horizon=20)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0])
    assert coldq.accumulated_loss(trace)[0] in set(found.to_pandas()["loss"])


def test_a_table_takes_parameters_as_learners_do(tmp_path) -> None:
    (tmp_path / "load.csv").write_text("price,load\n" + "3.0,5.0\n2.0,7.0\n" * 5)
    layout = tmp_path / "load.toml"
    layout.write_text(
        'decide = {grid = [0, 9]}\ncost = "price"\nrows = [{sum = "all", at_least = "load"}]\n'
    )
    several = {"problem": str(layout), "cost": ["price", 4.0]}
    found = coldq.sweep(problems=[several], learners=["COLDQ"], regret=False).to_pandas()
    assert found["problem"].tolist() == ["load (cost=price)", "load (cost=4.0)"]
    problem = coldq.problems.from_table(layout, cost=4.0)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0])
    assert found["loss"].iloc[1] == coldq.accumulated_loss(trace)[0]
    with pytest.raises(coldq.InvalidInput, match=r"no key 'costs' \(did you mean 'cost'"):
        coldq.sweep(problems=[{"problem": str(layout), "costs": 1.0}], learners=["COLDQ"])


def test_problems_and_learners_of_python_are_taken() -> None:
    problem = coldq.problems.OnlineQuadratic(horizon=30)
    learner = coldq.SafetyMargin(coldq.COLDQ.for_problem(problem), 0.1)
    found = coldq.sweep(
        problems=[{"problem": problem, "name": "short"}],
        learners=[learner, coldq.OGD, {"learner": coldq.RECOO, "name": "theirs"}],
        seeds=np.arange(3),
    ).to_pandas()
    assert set(found["problem"]) == {"short"}
    assert list(found["learner"].unique()) == ["SafetyMargin", "OGD", "theirs"]
    trace = coldq.simulate(learner, problem, range(3))
    of_margin = found[found["learner"] == "SafetyMargin"]
    assert np.array_equal(of_margin["loss"], coldq.accumulated_loss(trace))
    assert np.array_equal(of_margin["violation"], coldq.hard_violation(trace))
    with pytest.raises(coldq.InvalidInput, match="learners 1: eta of this OGD is a function"):
        coldq.sweep(problems=[problem], learners=[coldq.OGD(problem.domain, eta=lambda t: 1 / t)])


@pytest.mark.parametrize("name", ["OGD", "Ogd", "Mine"])
def test_a_class_of_ones_own_is_never_taken_for_the_catalogues(name: str) -> None:
    own: Any = type(name, (coldq.OGD,), {})
    problem = coldq.problems.OnlineLinear(horizon=9)
    for given in (own, own.for_problem(problem)):
        with pytest.raises(coldq.InvalidInput, match=r'learners 1: .* as in "module:learner"'):
            read_config(None, {**GOOD, "learners": [given]})


def test_a_learner_of_ones_own_is_found_in_this_folder(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a_learner_here.py").write_text("import coldq\n\nclass Mine(coldq.OGD): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    (found,) = read_config(None, {**GOOD, "learners": ["a_learner_here:Mine"]}).learners
    assert found.title == "Mine"
    with pytest.raises(coldq.InvalidInput, match="learners 1: a_learner_here has no Other"):
        read_config(None, {**GOOD, "learners": ["a_learner_here:Other"]})


def test_a_learner_of_ones_own_is_a_function_a_class_that_makes_one_or_itself(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "learners_here.py").write_text(
        "import coldq\n"
        "problem = coldq.problems.OnlineLinear(horizon=20)\n"
        "value = coldq.COLDQ(problem.domain, horizon=20, epsilon=0.001)\n"
        "def function(problem, epsilon=0.001):\n"
        "    return coldq.COLDQ.for_problem(problem, epsilon=epsilon)\n"
        "class Bare:\n"
        "    def __init__(self, domain): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    problem = coldq.problems.OnlineLinear(horizon=20)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem, epsilon=0.001), problem, range(2))
    names = [f"learners_here:{name}" for name in ("value", "function")]
    found = coldq.sweep(problems=[problem], learners=names, seeds=2).to_pandas()
    assert np.array_equal(found["loss"], np.tile(coldq.accumulated_loss(trace), 2))
    for given, words in (
        ({"learner": names[0], "epsilon": 0.1}, "no key 'epsilon'; there are learner, name"),
        ({"learner": names[1], "epsilom": 0.1}, "no key 'epsilom' .did you mean 'epsilon'"),
        ("learners_here:Bare", "must be a function of the problem, a class with for_problem"),
        ("learners_here:problem", "must be a function of the problem, a class with for_problem"),
    ):
        with pytest.raises(coldq.InvalidInput, match=f"learners 1: .*{words}"):
            read_config(None, {**GOOD, "learners": [given]})


def shifted(problem: Any, epsilon: float = 0.1) -> coldq.COLDQ:
    return coldq.COLDQ.for_problem(problem, epsilon=epsilon)


class Scaled(Counted):
    def __init__(self, horizon: int, box: coldq.Box | None = None) -> None:
        super().__init__(horizon)
        self.domain = box or self.domain


def test_a_problem_of_ones_own_takes_parameters_as_learners_do() -> None:
    box = coldq.Box(0.0, [1.0] * 10)
    name = f"{__name__}:Scaled"
    for given in (name, Scaled):
        found = read_config(
            None,
            {**GOOD, "problems": [{"problem": given, "horizon": [10, 20], "box": box}]},
        ).problems
        assert [one.title for one in found] == [f"{name} (horizon=10)", f"{name} (horizon=20)"]
        assert [one.problem.horizon for one in found] == [10, 20]
        assert all(one.problem.domain == box for one in found)
        assert [one.described["parameters"]["horizon"] for one in found] == [10, 20]
    table = coldq.sweep(
        problems=[{"problem": Scaled, "horizon": [10, 20]}], learners=["COLDQ"], seeds=2
    ).to_pandas()
    for horizon in (10, 20):
        problem = Scaled(horizon)
        trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, range(2))
        here = table[table["horizon"] == horizon]
        assert np.array_equal(here["loss"], coldq.accumulated_loss(trace))
    for given, words in (
        ({"problem": name, "horizn": 3}, r"no key 'horizn' \(did you mean 'horizon'"),
        ({"problem": name, "horizon": 0}, "horizon must be"),
        (name, f"{name} could not be had: TypeError"),
        (
            {"problem": "tests.evaluation.sweeps.counted:problem", "horizon": 9},
            "there is no key 'horizon'",
        ),
    ):
        with pytest.raises(coldq.InvalidInput, match=f"problems 1: .*{words}"):
            read_config(None, {**GOOD, "problems": [given]})


def test_classes_and_functions_are_taken_as_their_names_are() -> None:
    by_name, by_object = (
        read_config(
            None,
            {
                "problems": [{"problem": problem, "horizon": [9, 11]}],
                "learners": [{"learner": learner, "epsilon": [0.1, 0.2]}, other],
            },
        )
        for problem, learner, other in (
            ("time-varying", f"{__name__}:shifted", "RECOO"),
            (coldq.problems.TimeVarying, shifted, coldq.RECOO),
        )
    )
    assert [one.described for one in by_name.problems] == [
        one.described for one in by_object.problems
    ]
    assert [(one.title, one.described) for one in by_name.learners] == [
        (one.title, one.described) for one in by_object.learners
    ]
    adversary = {"problem": coldq.problems.Adversary, "horizon": 9, "greed": [0.5, 1.0]}
    titles = [one.title for one in read_config(None, {**GOOD, "problems": [adversary]}).problems]
    assert titles == ["Adversary (greed=0.5)", "Adversary (greed=1.0)"]


@pytest.mark.parametrize("what", ["problem", "learner"])
def test_a_function_that_no_other_process_finds_is_refused(what: str) -> None:
    def inner(problem: Any = None) -> Any:
        return problem

    for given in (inner, lambda problem: problem):
        with pytest.raises(coldq.InvalidInput, match=f'{what}s 1: .* as in "module:{what}"'):
            read_config(None, {**GOOD, f"{what}s": [given]})


def test_values_of_parameters_may_be_objects() -> None:
    power = coldq.schedules.Power(0.5, 2.0)
    found = read_config(
        None, {**GOOD, "learners": [{"learner": "RECOO", "alpha": [power, {"power": 0.25}]}]}
    ).learners
    assert [one.flat["alpha.exponent"] for one in found] == [0.5, 0.25]


def test_every_key_is_on_the_page_and_its_toml_is_asked_for() -> None:
    for key in SWEEP_KEYS:
        assert f"`{key}`" in PAGE or f"\n{key} = " in PAGE or f"[[{key}]]" in PAGE, key
    import tomllib

    found = read_config(tomllib.loads(blocks("toml")[0]), {})
    assert [len(found.problems), len(found.learners), len(found.seeds)] == [1, 8, 12]
