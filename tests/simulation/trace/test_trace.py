"""A trace is a table, a file and a picture, and all of them say what the arrays say."""

from __future__ import annotations

import json
import random
import warnings
import zipfile
from dataclasses import fields
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import coldq
from coldq.simulation.trace.saved import Text

PROBLEM = coldq.problems.TimeVarying(horizon=12, domain=coldq.Box(0.0, 5.0, dim=3))
LEARNER = coldq.COLDQ.for_problem(PROBLEM)
KEPT = ["decisions", "queue", "multipliers"]
TRACE = coldq.simulate(LEARNER, PROBLEM, seeds=[4, 9], keep=KEPT)
RATED = coldq.problems.Autoscale(horizon=60)
NETWORK = coldq.problems.TimeVarying(horizon=8, agents=3)
ON_NETWORK = coldq.Decentralised(
    coldq.COLDQ.for_problem(NETWORK), coldq.networks.metropolis(coldq.networks.complete(3))
)


class Rising:
    """A problem of somebody's own: the demand is t, and may be more than there can be."""

    domain, horizon, n_constraints = coldq.Box(0.0, 5.0, dim=1), 7, 1

    def start(self, seeds):
        return self

    def reveal(self, t, x):
        return coldq.Feedback(coldq.Linear([2.0]), coldq.Affine([[-1.0]], [-float(t)]))


def rising() -> coldq.Trace:
    learner = coldq.COLDQ(Rising.domain, horizon=7, alpha=lambda t: np.sqrt(t))
    return coldq.simulate(learner, Rising(), seeds=[3])


def with_margin() -> coldq.Trace:
    learner = coldq.SelfTuning(RATED.domain, violation_rate=0.1)
    return coldq.simulate(learner, RATED, seeds=[0], keep=["margin", "decisions"])


def same(one: coldq.Trace, other: coldq.Trace) -> None:
    """All arrays of two traces, bit for bit."""
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, field.name
            assert mine.tobytes() == theirs.tobytes(), field.name
        elif field.name == "state":
            mine, theirs = mine.to_arrays(), theirs.to_arrays()
            assert {k: (v.shape, v.tobytes()) for k, v in mine.items()} == {
                k: (v.shape, v.tobytes()) for k, v in theirs.items()
            }
        else:
            assert mine == theirs, field.name


# Tables


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_a_table_has_a_row_for_each_seed_and_slot_and_says_what_the_arrays_say(form: str) -> None:
    frame = getattr(TRACE, f"to_{form}")()
    names = list(frame.column_names if form == "arrow" else frame.columns)
    assert " ".join(names) == (
        "seed slot x_1 x_2 x_3 loss violation constraint_1 constraint_2 violation_1 violation_2 "
        "queue_1 queue_2 multipliers_1 multipliers_2"
    )
    assert len(frame) == 24
    for place, seed, slot in ((0, 4, 1), (11, 4, 12), (12, 9, 1), (20, 9, 9)):
        row = {name: frame[name][place] for name in names}
        row = {name: value.as_py() if form == "arrow" else value for name, value in row.items()}
        s, t = (4, 9).index(seed), slot - 1
        assert (row["seed"], row["slot"]) == (seed, slot)
        assert row["loss"] == TRACE.loss[s, t] and row["x_2"] == TRACE.decisions[s, t, 1]
        assert row["constraint_2"] == TRACE.constraint[s, t, 1]
        assert row["violation_1"] == max(TRACE.constraint[s, t, 0], 0.0)
        assert row["violation"] == row["violation_1"] + row["violation_2"]
        assert row["queue_2"] == TRACE.queue[s, t, 1]


def test_a_table_of_a_network_names_the_agents() -> None:
    keep = ["decisions", "queue", "agent_loss", "agent_violation"]
    trace = coldq.simulate(ON_NETWORK, NETWORK, seeds=[1, 2], keep=keep)
    frame = trace.to_pandas()
    assert len(frame) == 16 and "x_1" not in frame
    row = frame[(frame.seed == 2) & (frame.slot == 5)].iloc[0]
    for agent in range(3):
        assert row[f"agent_{agent + 1}_x_10"] == trace.decisions[1, 4, agent, 9]
        assert row[f"agent_{agent + 1}_loss"] == trace.agent_loss[1, 4, agent]
        assert row[f"agent_{agent + 1}_violation_2"] == trace.agent_violation[1, 4, agent, 1]
    own = [row[f"agent_{agent + 1}_violation_1"] for agent in range(3)]
    assert row["violation_1"] == pytest.approx(np.mean(own))


def test_margins_are_kept_and_reduced_slots_marked() -> None:
    trace = with_margin()
    assert trace.margin.shape == (1, 60, 1) and (trace.margin >= 0.0).all()
    assert trace.margin[0, 0, 0] == 0.0 and trace.margin.max() > 0.0
    frame = trace.to_pandas()
    assert frame["reduced"].dtype == bool and (frame["margin_1"] == trace.margin.ravel()).all()
    with pytest.raises(coldq.InvalidInput, match="COLDQ has no margin to keep"):
        coldq.simulate(LEARNER, PROBLEM, seeds=[0], keep="margin")


# Files


@pytest.mark.parametrize(
    "make",
    [
        lambda: TRACE,
        with_margin,
        lambda: coldq.simulate(ON_NETWORK, NETWORK, seeds=[5], keep=["agent_violation"]),
        lambda: coldq.simulate(coldq.OGD.for_problem(PROBLEM), PROBLEM, seeds=[1], delay=2),
        lambda: coldq.simulate(
            coldq.COLDQ(coldq.Box(0.0, 1000.0, dim=100), horizon=20),
            coldq.problems.JobScheduling(20, zones=["WEST", "N.Y.C."], centres_per_zone=50),
            seeds=[2**53],
        ),
    ],
    ids=["all kept", "margin", "network", "delay", "jobs"],
)
def test_a_file_gives_every_bit_back_and_learner_and_problem_with_it(make, tmp_path: Path) -> None:
    trace, path = make(), tmp_path / "runs" / "a.trace"
    trace.save(path)
    assert [each.name for each in path.parent.iterdir()] == ["a.trace"]
    again = coldq.Trace.load(path)
    same(again, trace)
    assert repr(again) == repr(trace)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("trace", [TRACE, with_margin()], ids=["COLDQ", "SelfTuning"])
def test_a_loaded_trace_is_certified_as_before_and_its_state_goes_on(trace, tmp_path) -> None:
    trace.save(tmp_path / "run.npz")
    again = coldq.Trace.load(tmp_path / "run.npz")
    before, after = coldq.bound_report(trace), coldq.bound_report(again)
    assert str(after) == str(before) and json.dumps(after.to_dict()) == json.dumps(before.to_dict())
    feedback = coldq.Feedback(coldq.Linear(np.ones(3)), coldq.Affine(np.ones((2, 3)), [1.0, 2.0]))
    if trace is TRACE:
        with pytest.warns(coldq.PastHorizon):
            moved = [t.learner.update(t.state, feedback).x for t in (trace, again)]
        assert moved[0].tobytes() == moved[1].tobytes()


def test_what_cannot_be_described_stays_as_text_and_it_says_so(tmp_path: Path) -> None:
    trace, path = rising(), tmp_path / "mine.npz"
    with pytest.warns(coldq.KeptAsText) as said:
        trace.save(path)
    assert [str(each.message).split(" is kept")[0] for each in said] == [
        "the learner",
        "the problem",
    ]
    with pytest.warns(coldq.KeptAsText) as said:
        again = coldq.Trace.load(path)
    assert "function of your own (<lambda>)" in str(said[0].message)
    assert "a Rising cannot be described" in str(said[1].message)
    assert isinstance(again.learner, Text) and again.learner.words == repr(trace.learner)
    assert "COLDQ (as text) on Rising (as text)" in repr(again)
    assert again.state["x"].tobytes() == trace.state.x.tobytes()
    assert again.loss.tobytes() == trace.loss.tobytes()
    assert coldq.accumulated_loss(again) == coldq.accumulated_loss(trace)
    with pytest.raises(coldq.InvalidInput, match=r"needs the problem .*load\(path, problem=...\)"):
        coldq.dynamic_regret(again)
    with pytest.raises(coldq.InvalidInput, match=r"needs the learner"):
        coldq.bound_report(again)
    with pytest.raises(coldq.InvalidInput, match="a problem needs domain, which this has not"):
        coldq.constraint_variation(again.problem, again.seeds)
    with pytest.warns(coldq.KeptAsText):
        again.save(path)  # what was text stays text, though nothing new is lost
        again = coldq.Trace.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", coldq.KeptAsText)
        whole = coldq.Trace.load(path, learner=trace.learner, problem=trace.problem)
    assert whole.state.queue.tobytes() == trace.state.queue.tobytes()
    best = coldq.dynamic_regret(whole, skip_infeasible=True)
    assert best == coldq.dynamic_regret(trace, skip_infeasible=True)
    with (
        pytest.raises(coldq.InvalidInput, match="was a Rising, but"),
        pytest.warns(coldq.KeptAsText),
    ):
        coldq.Trace.load(path, problem=PROBLEM)


def test_a_trace_takes_no_other_problem_or_learner_of_the_same_class(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    TRACE.save(path)
    assert coldq.Trace.load(path, problem=PROBLEM, learner=LEARNER).problem is PROBLEM
    other = coldq.problems.TimeVarying(horizon=12, domain=PROBLEM.domain, n_measurements=9)
    with pytest.raises(coldq.InvalidInput, match=r"problem of .* another: .*n_measurements=9"):
        coldq.Trace.load(path, problem=other)
    with pytest.raises(coldq.InvalidInput, match=r"learner of .* was COLDQ.* another: COLDQ"):
        coldq.Trace.load(path, learner=coldq.COLDQ(PROBLEM.domain, 12, epsilon=0.25))


def test_a_damaged_foreign_or_truncated_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    TRACE.save(path)
    good, rng, refused = path.read_bytes(), random.Random(5), 0
    for case in range(300):
        bad = bytearray(good)
        if case % 3 == 0:
            bad = bad[: rng.randrange(len(good))]
        else:
            for _ in range(rng.randint(1, 4)):
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        try:
            again = coldq.Trace.load(path)
        except coldq.Error as error:
            refused += 1
            assert "run.npz" in str(error)
        else:  # the damage hit what nobody reads, such as a time stamp inside the archive
            same(again, TRACE)
    assert refused > 200
    for foreign in (b"", b"PK\x03\x04", b"\x93NUMPY", b"seed,slot\n1,2\n"):
        path.write_bytes(foreign)
        with pytest.raises(coldq.NotReadable, match="damaged, or no trace"):
            coldq.Trace.load(path)
    np.save(path.with_suffix(".npy"), np.ones(3))
    np.savez(path, loss=np.ones((1, 2)))
    np.savez(tmp_path / "pickled.npz", about=np.array([{}], dtype=object))
    for other in (path, path.with_suffix(".npy"), tmp_path / "pickled.npz"):
        with pytest.raises(coldq.NotReadable, match="damaged, or no trace"):
            coldq.Trace.load(other)
    for nothing in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(coldq.NotReadable, match="there is no file"):
            coldq.Trace.load(nothing)
    with pytest.raises(coldq.NotReadable, match="File name too long"):
        coldq.Trace.load(tmp_path / f"{'a' * 300}.npz")
    with pytest.raises(coldq.InvalidInput, match="path must name a file"):
        TRACE.save(3)  # type: ignore[arg-type]


def changed(path: Path, **new) -> Path:
    """A file of TRACE with other content in some places."""
    TRACE.save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    about = json.loads(content["about"].tobytes())
    about |= new.pop("about", {})
    content |= new | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
    np.savez(path, **content)
    return path


def test_a_whole_file_whose_parts_do_not_fit_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    assert zipfile.is_zipfile(changed(path))
    same(coldq.Trace.load(path), TRACE)
    for new in (
        {"about": {"seeds": [1]}},
        {"about": {"seeds": [1, "2"]}},
        {"about": {"delay": -1}},
        {"about": {"learner": 3}},
        {"about": {"format": "coldq trace 9"}},
        {"loss": np.ones((2, 12), np.float32)},
        {"constraint": np.ones((2, 11, 2))},
        {"decisions": np.ones((3, 12, 3))},
    ):
        with pytest.raises(coldq.NotReadable, match=r"run\.npz"):
            coldq.Trace.load(changed(path, **new))
    with pytest.raises(coldq.InvalidInput, match="12 slots and 3 constraints, but the problem 12"):
        coldq.Trace.load(changed(path, constraint=np.ones((2, 12, 3))))
    newer = {"name": "Newer", "words": "Newer()", "description": {"type": "Newer"}}
    with pytest.warns(coldq.KeptAsText, match="this version cannot build it"):
        again = coldq.Trace.load(changed(path, about={"problem": newer}))
    assert again.problem.name == "Newer"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(coldq.NotWritten, match="could not be written"):
        TRACE.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


# Slots in which nothing is feasible


def test_infeasible_slots_are_named_and_regret_is_had_over_the_others() -> None:
    trace = rising()
    named = coldq.infeasible_slots(trace)
    assert list(named) == [3] and named[3].tolist() == [6, 7]  # the demand is 6 and 7, X = [0, 5]
    # The best decision of slot t is x = t, which costs 2 t.
    best = np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    expected = (trace.loss[0, :5] - best).sum()
    assert coldq.dynamic_regret(trace, skip_infeasible=True) == pytest.approx(expected)
    running = coldq.dynamic_regret(trace, skip_infeasible=True, cumulative=True)
    assert running[0, 4:].tolist() == [running[0, 4]] * 3
    with pytest.warns(coldq.UndefinedRegret, match=r"skip_infeasible=True .* in slots 6, 7$"):
        assert np.isnan(coldq.dynamic_regret(trace))
    assert coldq.infeasible_slots(TRACE) == {}
    skipped = coldq.dynamic_regret(TRACE, skip_infeasible=True)
    assert (skipped == coldq.dynamic_regret(TRACE)).all()


# Pictures


def test_a_picture_draws_what_the_arrays_say_with_the_seeds_as_bands() -> None:
    axes = TRACE.plot().axes
    assert [panel.get_title() for panel in axes] == ["loss", "violation", *KEPT]
    drawn = [TRACE.loss[..., None], TRACE.violation.sum(axis=-1)[..., None]]
    drawn += [TRACE.decisions, TRACE.queue, TRACE.multipliers]
    for panel, values in zip(axes, drawn, strict=True):
        assert len(panel.lines) == len(panel.collections) == values.shape[-1]
        for k, line in enumerate(panel.lines):
            assert line.get_xdata().tolist() == list(range(1, 13))
            assert (line.get_ydata() == values[..., k].mean(axis=0)).all()
            corners = panel.collections[k].get_paths()[0].vertices
            for t in range(12):
                own = corners[corners[:, 0] == t + 1, 1]
                assert own.min() == values[:, t, k].min() and own.max() == values[:, t, k].max()
    assert [text.get_text() for text in axes[2].get_legend().get_texts()] == ["x_1", "x_2", "x_3"]
    assert axes[-1].get_xlabel() == "slot t"


def test_only_what_is_there_is_drawn_and_one_seed_has_no_band() -> None:
    trace = coldq.simulate(LEARNER, PROBLEM, seeds=[4])
    axes = trace.plot().axes
    assert [panel.get_title() for panel in axes] == ["loss", "violation"]
    assert all(len(panel.collections) == 0 for panel in axes)
    margin = with_margin()
    assert [panel.get_title() for panel in margin.plot().axes][-2:] == ["decisions", "margin"]
    keep = ["decisions"]
    run = coldq.simulate(ON_NETWORK, NETWORK, seeds=[1], keep=keep)
    (network,) = run.plot("decisions").axes
    assert len(network.lines) == len(network.collections) == 10  # the agents are the band
    for wrong in ("queue", "", 3, [], ["loss", 1]):
        with pytest.raises(coldq.InvalidInput, match="what m"):
            trace.plot(wrong)  # type: ignore[arg-type]


def test_a_figure_or_the_axes_given_come_out_and_nothing_global_changes() -> None:
    import matplotlib.pyplot as plt

    before, figures = dict(matplotlib.rcParams), plt.get_fignums()
    drawn = TRACE.plot("loss", color="black", linewidth=3.0, label="mine")
    (one,) = drawn.axes
    assert one.lines[0].get_color() == "black" and one.lines[0].get_linewidth() == 3.0
    assert one.lines[0].get_label() == "mine" and one.figure is drawn
    again = TRACE.plot("violation", ax=one, cumulative=True)
    assert again is one and len(one.lines) == 2
    running = np.add.accumulate(TRACE.violation.sum(axis=-1), axis=1).mean(axis=0)
    assert (one.lines[1].get_ydata() == running).all()
    assert plt.get_fignums() == figures and dict(matplotlib.rcParams) == before
    figure, given = plt.subplots(2)
    assert (TRACE.plot(["loss", "queue"], ax=given) == given).all()
    with pytest.raises(coldq.InvalidInput, match="ax must be 3 of Matplotlib's axes"):
        TRACE.plot(["loss", "queue", "violation"], ax=given)
    with pytest.raises(coldq.InvalidInput, match=r"refuses the line's options: .*'colour'"):
        TRACE.plot("loss", colour="black")
    with pytest.raises(coldq.InvalidInput, match="ax must be one of Matplotlib's axes"):
        TRACE.plot("loss", ax=3)
    plt.close(figure)


def test_traces_are_compared_in_one_picture() -> None:
    other = coldq.simulate(coldq.RECOO.for_problem(PROBLEM), PROBLEM, seeds=[4, 9])
    loss, violation = coldq.plot_compare([TRACE, other, TRACE]).axes
    labels = ["COLDQ 1", "RECOO", "COLDQ 2"]
    assert [line.get_label() for line in loss.lines] == labels
    for line, trace in zip(violation.lines, [TRACE, other, TRACE], strict=True):
        measured = coldq.hard_violation(trace, cumulative=True).mean(axis=0)
        assert line.get_ydata() == pytest.approx(measured, rel=1e-12)
    assert len({line.get_color() for line in loss.lines}) == 3
    one = coldq.plot_compare({"ours": TRACE, "theirs": other}, "loss", cumulative=False).axes[0]
    assert [line.get_label() for line in one.lines] == ["ours", "theirs"]
    assert (one.lines[1].get_ydata() == other.loss.mean(axis=0)).all()
    assert coldq.plot_compare([TRACE], "loss", ax=one) is one and len(one.lines) == 3
    for wrong in ([], [TRACE, rising()], 3, [3], [TRACE, with_margin()]):
        with pytest.raises(coldq.InvalidInput, match=r"traces must|takes a Trace"):
            coldq.plot_compare(wrong)  # type: ignore[arg-type]


def test_a_picture_of_different_seeds_says_so() -> None:
    table = coldq.problems.Autoscale(30)  # which shows all seeds the same
    for problem, said in ((PROBLEM, "of different seeds"), (table, "")):
        one, other, again = (
            coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=seeds)
            for seeds in ([4, 9], [4, 5], [9, 4])
        )
        for traces, words in (([one, other], said), ([one, again], "")):
            legend = coldq.plot_compare(traces, "loss").axes[0].get_legend()
            assert legend.get_title().get_text() == words


def test_a_problem_becomes_data_and_comes_back_equal() -> None:
    domain = coldq.Box(0.0, [1.0, 2.0, 3.0])
    for problem in (
        PROBLEM,
        NETWORK,
        coldq.problems.TimeVarying(horizon=9, domain=domain, n_measurements=2, n_constraints=0),
        coldq.problems.OnlineLinear(horizon=9),
        coldq.problems.OnlineQuadratic(horizon=9),
        coldq.problems.Drifting(0.25, 0.5, strongly_convex=True, horizon=9),
        coldq.problems.Autoscale(price_seed=3),
        coldq.problems.Dispatch(horizon=40),
        coldq.problems.JobScheduling(horizon=300, arrivals="requests", price_unit="$/kWh"),
    ):
        text = json.dumps(coldq.describe(problem), allow_nan=False)
        assert coldq.build(json.loads(text)) == problem
