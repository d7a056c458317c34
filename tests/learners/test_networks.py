"""Graphs, their weights, agents that mix decisions, and what a network's run is measured by."""

from __future__ import annotations

import pickle

import networkx
import numpy as np
import pytest

import coldq
from coldq import checks, networks
from coldq.problems import TimeVarying
from coldq.slot.minimisers import nearest_minimiser

X = coldq.Box([-1.0, 0.0, -2.0], [1.0, 2.0, 0.5])
RING = networks.metropolis(networks.ring(4))
INNER = [
    coldq.COLDQ(X, horizon=50, epsilon=0.01),
    coldq.COLDQ.anytime(X, epsilon=0.05),
    coldq.RECOO(X),
    coldq.RECOO(X, reading="comparison"),
    coldq.Yi2023.from_exponents(X, a=1.0, b=1.0, g=1.0),
]
OTHERS = [
    coldq.Yi2021(X, 50, alpha0=0.3, gamma0=0.5),
    coldq.SinhaVaze(X, 50, lipschitz=3.0),
    coldq.YuanLamperski2018(X, 50, eta=0.1, sigma=2.0),
]
LINKS = [
    networks.Quantised(0.25),
    networks.Noisy(0.1, seed=4),
    networks.Dropped(0.5, seed=4),
]
SMALL = TimeVarying(horizon=30, agents=3)


def name_of(learner) -> str:
    return type(learner).__name__


# -- Graphs and weights --------------------------------------------------------------------------


def test_graphs_are_those_of_networkx() -> None:
    for n in range(1, 8):
        for ours, theirs in [
            (networks.path(n), networkx.path_graph(n)),
            (networks.complete(n), networkx.complete_graph(n)),
            (networks.ring(n), networkx.cycle_graph(n) if n > 2 else networkx.path_graph(n)),
        ]:
            np.testing.assert_array_equal(ours, networks.from_networkx(theirs))


def test_random_graphs_are_connected_seeded_and_as_dense_as_asked() -> None:
    graphs = [networks.random(20, 0.3, np.random.default_rng(s)) for s in range(40)]
    again = networks.random(20, 0.3, np.random.default_rng(0))
    np.testing.assert_array_equal(graphs[0], again)
    for graph in graphs:
        assert networkx.is_connected(networkx.from_numpy_array(graph))
    others = 20 * 19 / 2 - 19  # edges that the path does not have
    extra = np.mean([graph.sum() / 2 - 19 for graph in graphs]) / others
    assert abs(extra - 0.3) < 0.02


@pytest.mark.parametrize("weights", [networks.metropolis, networks.uniform])
def test_weights_are_doubly_stochastic_symmetric_and_on_the_graph(weights) -> None:
    rng = np.random.default_rng(1)
    graphs = [networks.path(1), networks.path(2), networks.ring(7), networks.complete(5)]
    for graph in [*graphs, *(networks.random(9, 0.2, rng) for _ in range(20))]:
        W = weights(graph)
        n = len(W)
        assert (W >= 0.0).all()
        np.testing.assert_allclose(W.sum(axis=0), 1.0, atol=1e-14)
        np.testing.assert_array_equal(W, W.T)
        assert (W[~graph & ~np.eye(n, dtype=bool)] == 0.0).all()
        assert (W[graph] > 0.0).all()
        # Repeated mixing of a connected graph tends to the plain mean.
        np.testing.assert_allclose(np.linalg.matrix_power(W, 4000), 1.0 / n, atol=1e-6)


def test_complete_graphs_have_exactly_equal_weights() -> None:
    for n in range(1, 30):
        W = networks.metropolis(networks.complete(n))
        assert np.unique(W).size == 1


def test_uniform_weights_are_those_of_the_released_code() -> None:
    # Off-diagonals 1/n, the diagonal what is left.
    graph = networks.random(6, 0.5, np.random.default_rng(3))
    W = networks.uniform(graph)
    np.testing.assert_array_equal(W[graph], 1.0 / 6.0)
    np.testing.assert_allclose(np.diag(W), 1.0 - graph.sum(axis=1) / 6.0)


def test_bad_graphs_and_weights_get_a_sentence() -> None:
    rng = np.random.default_rng(0)
    learner = coldq.COLDQ(X, horizon=5)
    half = np.full((2, 2), 0.5)
    for make, words in [
        (lambda: networks.path(0), "n must be a whole number, at least 1"),
        (lambda: networks.random(-1, 0.5, rng), "n must be a whole number, at least 1"),
        (lambda: networks.random(4, 1.5, rng), "probability must lie in"),
        (lambda: networks.random(4, 0.5, 7), "rng must be a numpy.random.Generator"),
        (lambda: networks.metropolis(np.ones((2, 3))), "must be an .n, n. array"),
        (lambda: networks.uniform([[0, 1], [0, 0]]), "must be symmetric"),
        (lambda: networks.metropolis(np.eye(2)), "an agent as its own neighbour"),
        (lambda: networks.metropolis([[0, np.nan], [np.nan, 0]]), "graph must be finite"),
        (lambda: networks.from_networkx(networkx.DiGraph()), "undirected NetworkX graph"),
        (lambda: networks.Alternating(), "at least one matrix"),
        (lambda: networks.Alternating(half, np.eye(3)), "shape .2, 2., but has .3, 3."),
        (lambda: coldq.Decentralised(learner, np.ones((2, 3)) / 3), "must have the shape .n, n."),
        (lambda: coldq.Decentralised(learner, [[1.5, -0.5], [-0.5, 1.5]]), "not be negative"),
        (lambda: coldq.Decentralised(learner, [[0.5, 0.3], [0.5, 0.5]]), "row 0 sums to 0.8"),
        (lambda: coldq.Decentralised(learner, [[0.5, 0.5], [0.3, 0.7]]), "columns of mixing must"),
        (lambda: coldq.Decentralised(learner, [[0.5, np.nan], [0.5, 0.5]]), "must be finite"),
        (lambda: coldq.Decentralised(coldq.OGD(X, eta=1.0), half), "update takes a center"),
        (lambda: coldq.Decentralised("COLDQ", half), "update takes a center"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            make()


def test_a_schedule_s_matrices_are_checked_in_every_slot() -> None:
    learner = coldq.Decentralised(INNER[0], lambda t: np.eye(2) if t < 3 else np.full((2, 2), 0.4))
    state = learner.init(0)
    nothing = coldq.Feedback(coldq.Linear(np.zeros(3)), None)
    for _ in range(2):
        state = learner.update(state, nothing)
    with pytest.raises(coldq.InvalidInput, match=r"row 0 sums to 0\.8"):
        learner.update(state, nothing)


# -- Agents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("learner", [*INNER, *OTHERS], ids=name_of)
def test_the_contract(learner, check) -> None:
    check(checks.Case.of(coldq.Decentralised(learner, RING)))


def test_the_contract_of_mixing_that_changes_with_the_slot() -> None:
    talks = networks.Alternating(RING, np.eye(4), networks.metropolis(networks.complete(4)))
    checks.check_learner(coldq.Decentralised(INNER[0], talks))
    checks.check_learner(coldq.Decentralised(INNER[-1], talks), n_constraints=0)


@pytest.mark.parametrize("messages", LINKS, ids=name_of)
def test_the_contract_where_messages_differ_from_decisions(messages) -> None:
    checks.check_learner(coldq.Decentralised(INNER[0], RING, messages))
    checks.check_learner(coldq.Decentralised(OTHERS[1], RING, messages))


@pytest.mark.parametrize("learner", OTHERS, ids=name_of)
def test_a_center_takes_the_place_of_the_decision_in_the_step_alone(learner) -> None:
    # Without rows each of these projects z less a multiple of the gradient at x; SinhaVaze's first
    # is as long as R / sqrt(2).
    gradient = np.array([0.02, 0.01, -0.03])
    loss, z = coldq.Feedback(coldq.Linear(gradient), None), np.array([0.3, 0.7, -0.4])
    state = learner.init(0, start=[0.1, 1.0, -1.0])
    moved = learner.update(state, loss).x - state.x
    if isinstance(learner, coldq.SinhaVaze):
        moved = -X.diameter * gradient / np.linalg.norm(gradient) / np.sqrt(2.0)
    expected = X.project(z + moved)
    np.testing.assert_allclose(learner.update(state, loss, center=z).x, expected, atol=1e-15)


def test_what_is_heard_is_a_mean_of_messages_and_of_the_own_decision() -> None:
    rng = np.random.default_rng(3)
    x, still = rng.standard_normal((4, 3)), coldq.Feedback(coldq.Linear(np.zeros(3)), None)
    wide = coldq.COLDQ(coldq.Box(-9.0, 9.0, dim=3), alpha=1.0, eta=0.5, gamma=2.0)

    def heard(messages) -> np.ndarray:
        network = coldq.Decentralised(wide, RING, messages)
        return network.update(network.init(0, start=x), still).x

    own = np.diag(np.diag(RING))
    rounded = own @ x + (RING - own) @ (0.25 * np.round(x / 0.25))
    np.testing.assert_allclose(heard(networks.Quantised(0.25)), rounded, atol=1e-14)
    np.testing.assert_allclose(heard(networks.Quantised(1e-12)), RING @ x, atol=1e-11)
    np.testing.assert_allclose(heard(networks.Dropped(0.0)), RING @ x, atol=1e-14)
    np.testing.assert_allclose(heard(networks.Dropped(1.0)), x, atol=1e-14)
    np.testing.assert_allclose(heard(networks.Noisy(0.0)), RING @ x, atol=1e-14)
    apart = heard(networks.Noisy(0.1)) - RING @ x
    assert 0.0 < np.abs(apart).max() < 1.0


def test_links_fail_as_often_as_said_both_ways_and_weights_stay_doubly_stochastic() -> None:
    W, links = networks.metropolis(networks.complete(6)), networks.Dropped(0.3, seed=1)
    kept = links.kept(W, np.arange(1, 801))
    np.testing.assert_allclose(kept.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(kept.sum(axis=-2), 1.0, atol=1e-12)
    off = ~np.eye(6, dtype=bool)
    assert (kept == np.swapaxes(kept, -1, -2)).all()
    assert abs((kept[:, off] == 0.0).mean() - 0.3) < 0.02
    np.testing.assert_array_equal(links.kept(W, np.array([17])), kept[16:17])


def test_noise_has_its_deviation_and_none_is_heard_twice() -> None:
    link = networks.Noisy(2.0, seed=9)
    noise = link.sent(np.zeros((400, 5, 3)), np.arange(1, 401))
    assert abs(noise.std() - 2.0) < 0.1 and abs(noise.mean()) < 0.1
    assert len(np.unique(noise)) == noise.size
    other = networks.Noisy(2.0, seed=8).sent(np.zeros((400, 5, 3)), np.arange(1, 401))
    assert (noise != other).all()


def test_messages_that_are_none_are_refused() -> None:
    with pytest.raises(coldq.InvalidInput, match="messages must be None"):
        coldq.Decentralised(INNER[0], RING, 0.5)
    with pytest.raises(coldq.InvalidInput, match="step must be positive"):
        networks.Quantised(0.0)
    with pytest.raises(coldq.InvalidInput, match="deviation must not be negative"):
        networks.Noisy(-1.0)
    with pytest.raises(coldq.InvalidInput, match="probability must lie in"):
        networks.Dropped(1.5)
    assert coldq.Decentralised(INNER[-1], RING).card.claims
    assert not coldq.Decentralised(INNER[-1], RING, networks.Quantised(0.1)).card.claims


@pytest.mark.parametrize("learner", INNER, ids=name_of)
def test_with_identity_mixing_agents_are_single_learners_bit_for_bit(learner) -> None:
    case = checks.Case.of(coldq.Decentralised(learner, np.eye(4)))
    network = case.init((3,))
    alone = {(k, i): learner.init(2) for k in range(3) for i in range(4)}
    for slot in range(1, checks.SLOTS + 1):
        network = case.learner.update(network, case.feedback(slot))
        H, y, A, b = case.data[slot - 1]
        for k, i in alone:
            own = coldq.Feedback(
                coldq.LeastSquares(H[k, i], y[k, i]), coldq.Affine(A[k, i], b[k, i])
            )
            alone[k, i] = learner.update(alone[k, i], own)
            assert network.x[k, i].tobytes() == alone[k, i].x.tobytes()
            assert network.queue[k, i].tobytes() == alone[k, i].queue.tobytes()


@pytest.mark.parametrize("learner", INNER, ids=name_of)
def test_with_complete_mixing_all_agents_agree_on_the_center(learner) -> None:
    # With the same losses and constraints and queues they then agree on everything, bit for bit.
    network = coldq.Decentralised(learner, networks.metropolis(networks.complete(5)))
    rng = np.random.default_rng(2)
    start = X.project(rng.standard_normal((5, 3)))
    state = network.init(0, start=start)
    assert np.ptp(state.x, axis=0).max() > 0.1
    for _ in range(4):
        loss = coldq.LeastSquares(rng.standard_normal((2, 3)), rng.standard_normal(2))
        same = coldq.Linear(loss.gradient(np.zeros(3)))
        state = network.update(state, coldq.Feedback(same, None))
        assert (state.x == state.x[0]).all()


def test_mixing_is_a_matrix_product_and_keeps_the_mean() -> None:
    from coldq.base.contractions import mix

    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4, 3))
    mixed = mix(RING, x)
    np.testing.assert_allclose(mixed, RING @ x, atol=1e-15)
    np.testing.assert_allclose(mixed.mean(axis=1), x.mean(axis=1), atol=1e-15)
    zero = np.array([[-0.0, 1.0], [np.pi, -2.0]])
    assert mix(np.eye(2), zero).tobytes() == zero.tobytes()


def test_the_center_of_an_update_must_fit() -> None:
    learner = INNER[0]
    nothing = coldq.Feedback(coldq.Linear(np.zeros(3)), None)
    with pytest.raises(coldq.InvalidInput, match="center must have 3 coordinates"):
        learner.update(learner.init(0), nothing, center=np.zeros(2))
    with pytest.raises(coldq.InvalidInput, match="center has shape"):
        learner.update(learner.init(0), nothing, center=np.zeros((2, 3)))


def test_networks_with_different_clocks_get_the_weights_of_their_own_slot() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    network = coldq.Decentralised(INNER[0], networks.Alternating(np.eye(2), swap))
    start = np.array([[0.5, 1.0, 0.0], [-0.5, 0.0, 0.0]])
    first = network.init(0, start=start)
    arrays = first.to_arrays()
    both = network.from_arrays(
        {name: np.stack([array, array]) for name, array in arrays.items()}
        | {"t": np.array([[1, 1], [2, 2]])}
    )
    after = network.update(both, coldq.Feedback(coldq.Linear(np.zeros(3)), None))
    np.testing.assert_array_equal(after.x, [start, start[::-1]])


def test_states_of_another_network_are_refused() -> None:
    network = coldq.Decentralised(INNER[0], RING)
    other = coldq.Decentralised(INNER[0], np.eye(3))
    with pytest.raises(coldq.InvalidInput, match=r"agents=3\), but .* agents=4\): mixing, agents"):
        network.from_arrays(other.init(1).to_arrays())
    with pytest.raises(coldq.InvalidInput, match="4 agents as their last leading axis"):
        network.from_arrays(other.init(1).to_arrays(), strict=False)
    with pytest.raises(coldq.WrongState, match=r"4 agents, .* but the state's .* shape \(3, 3\)"):
        network.update(other.init(0), coldq.Feedback(coldq.Linear(np.zeros(3)), None))
    with pytest.raises(coldq.InvalidInput, match="share a clock"):
        other.from_arrays(other.init(1).to_arrays() | {"t": np.array([1, 1, 2])})


def test_only_yi_2023_keeps_its_claims_on_a_network() -> None:
    yi, plain = (coldq.Decentralised(learner, RING) for learner in (INNER[-1], INNER[0]))
    assert yi.card.claims == coldq.Yi2023.card.claims
    assert plain.card.claims == ()
    assert plain.card.needs == coldq.COLDQ.card.needs
    assert coldq.citation(plain) == coldq.citation(coldq.COLDQ)
    assert pickle.loads(pickle.dumps(yi)).card == yi.card


# -- Problems and measures -----------------------------------------------------------------------


def test_one_agent_draws_what_no_agents_draw() -> None:
    plain, one = TimeVarying(300).start([4, 9]), TimeVarying(300, agents=1).start([4, 9])
    for t in range(1, 301):
        a, b = plain.reveal(t, None), one.reveal(t, None)  # type: ignore[arg-type]
        for part, names in (("loss", "Hy"), ("constraint", "Ab")):
            for name in names:
                ours, theirs = getattr(getattr(a, part), name), getattr(getattr(b, part), name)
                assert ours.tobytes() == theirs.tobytes()
                assert theirs.shape == (2, 1, *ours.shape[1:])


def test_agents_draw_functions_of_their_own_whatever_seeds_run_beside_them() -> None:
    together, alone = SMALL.start([1, 2]).reveal(7, None), SMALL.start([2]).reveal(7, None)
    assert together.loss.H.shape == (2, 3, 4, 10)
    assert together.constraint.A.shape == (2, 3, 2, 10)
    assert together.loss.H[1].tobytes() == alone.loss.H[0].tobytes()
    flat = together.loss.H.reshape(6, -1)
    assert np.abs(np.corrcoef(flat) - np.eye(6)).max() < 0.6
    assert (
        TimeVarying(10, agents=4).constants.gradient_bound
        > TimeVarying(10).constants.gradient_bound
    )


def test_a_single_agent_is_measured_as_no_agents_are() -> None:
    plain, network = TimeVarying(40), TimeVarying(40, agents=1)
    learner = coldq.COLDQ.for_problem(plain)
    a = coldq.simulate(learner, plain, range(3), keep=["decisions"])
    b = coldq.simulate(coldq.Decentralised(learner, [[1.0]]), network, range(3), keep="decisions")
    assert a.decisions is not None
    assert b.decisions is not None
    assert a.decisions.tobytes() == b.decisions.tobytes()
    for name in ("loss", "constraint", "violation"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
    np.testing.assert_allclose(coldq.dynamic_regret(a), coldq.dynamic_regret(b), atol=1e-7)
    np.testing.assert_allclose(coldq.static_regret(a), coldq.static_regret(b), atol=1e-7)
    np.testing.assert_allclose(
        coldq.constraint_variation(plain, [0]).total, coldq.constraint_variation(network, [0]).total
    )


def test_every_agent_is_judged_by_everybody_s_functions() -> None:
    W = networks.metropolis(networks.path(3))
    learner = coldq.Decentralised(coldq.COLDQ.for_problem(SMALL), W)
    keep = ["decisions", "queue", "agent_loss", "agent_violation"]
    trace = coldq.simulate(learner, SMALL, [5, 6], keep=keep)
    assert repr(trace) == (
        "Trace(Decentralised on TimeVarying: 2 seeds, 3 agents, 30 slots, 2 constraints)"
    )
    assert trace.decisions is not None
    assert trace.queue is not None
    assert trace.decisions.shape == (2, 30, 3, 10)
    assert trace.queue.shape == (2, 30, 3, 2)
    for k, seed in enumerate((5, 6)):
        stream = SMALL.start([seed])
        for t in range(1, 31):
            shown = stream.reveal(t, None)  # type: ignore[arg-type]
            H, y, A, b = (v[0] for v in (shown.loss.H, shown.loss.y, shown.constraint.A,
                                         shown.constraint.b))  # fmt: skip
            x = trace.decisions[k, t - 1]
            losses = np.zeros((3, 3))
            g = np.zeros((3, 3, 2))
            for i in range(3):
                for j in range(3):
                    losses[i, j] = 0.5 * np.linalg.norm(H[j] @ x[i] - y[j]) ** 2
                    g[i, j] = A[j] @ x[i] - b[j]
            over = np.maximum(g, 0.0)
            np.testing.assert_allclose(trace.loss[k, t - 1], losses.mean())
            np.testing.assert_allclose(trace.constraint[k, t - 1], g.mean(axis=(0, 1)))
            np.testing.assert_allclose(trace.violation[k, t - 1], over.mean(axis=(0, 1)))
            assert trace.agent_loss is not None
            assert trace.agent_violation is not None
            np.testing.assert_allclose(trace.agent_loss[k, t - 1], losses.mean(axis=1))
            np.testing.assert_allclose(trace.agent_violation[k, t - 1], over.mean(axis=1))
    np.testing.assert_allclose(coldq.hard_violation(trace), trace.violation.sum(axis=(1, 2)))


def test_the_best_decision_of_a_network_is_feasible_for_all_and_has_the_least_mean_loss() -> None:
    import cvxpy as cp

    best = coldq.dynamic_comparator(SMALL, [5])
    stream = SMALL.start([5])
    for t in (1, 2, 3):
        shown = stream.reveal(t, None)  # type: ignore[arg-type]
        H, y, A, b = (v[0] for v in (shown.loss.H, shown.loss.y, shown.constraint.A,
                                     shown.constraint.b))  # fmt: skip
        x = cp.Variable(10)
        cost = sum(cp.sum_squares(H[j] @ x - y[j]) for j in range(3)) / 6.0
        rows = [A[j] @ x <= b[j] for j in range(3)]
        problem = cp.Problem(cp.Minimize(cost), [*rows, x >= 0.0, x <= 5.0])
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(best.loss[0, t - 1], problem.value, rtol=1e-6)
        assert all((A[j] @ best.x[0, t - 1] - b[j]).max() <= 1e-8 for j in range(3))


def test_a_network_s_functions_are_put_together_whatever_axes_they_share() -> None:
    rng = np.random.default_rng(7)
    x, lead = rng.normal(size=(4, 2)), (4, 3)
    shared = coldq.Affine(rng.normal(size=(2, 2)), rng.normal(size=(3, 2)))
    for loss in (
        coldq.LeastSquares(rng.normal(size=(4, 3, 5, 2)), rng.normal(size=5)),
        coldq.Quadratic(np.eye(2), rng.normal(size=(4, 3, 2))),
        coldq.Linear(rng.normal(size=(3, 2))),
    ):
        whole = networks.network_feedback(coldq.Feedback(loss, shared, slot=2), lead)
        each = [np.broadcast_to(loss.value(x[:, None]), lead)[:, i] for i in range(3)]
        np.testing.assert_allclose(whole.loss.value(x), np.mean(each, axis=0))
        rows = np.broadcast_to(shared.value(x[:, None]), (4, 3, 2)).reshape(4, 6)
        np.testing.assert_allclose(whole.constraint.value(x), rows)
        assert whole.slot == 2
    none = networks.network_feedback(coldq.Feedback(coldq.Linear([1.0, 2.0]), None), lead)
    assert none.constraint.value(x).shape == (4, 0)


def test_a_network_s_functions_that_cannot_be_put_together_are_refused() -> None:
    measured = coldq.GradientAt(np.zeros((3, 2)), np.ones((3, 2)))
    rows = coldq.Affine(np.ones((3, 1, 2)), np.ones((3, 1)))
    with pytest.raises(coldq.InvalidInput, match="quadratic and Smooth ones, not GradientAt"):
        networks.network_feedback(coldq.Feedback(measured, rows), (3,))
    capacity = coldq.LogCapacity(np.ones(3), np.ones(2), np.ones(2))
    with pytest.raises(coldq.InvalidInput, match="one is a LogCapacity"):
        networks.network_feedback(coldq.Feedback(coldq.Linear(np.ones((3, 2))), capacity), (3,))


def test_learners_and_problems_of_different_networks_do_not_meet() -> None:
    learner = coldq.COLDQ.for_problem(SMALL)
    for player, problem in [
        (learner, SMALL),
        (coldq.Decentralised(learner, np.eye(2)), SMALL),
        (coldq.Decentralised(learner, np.eye(3)), TimeVarying(horizon=30)),
    ]:
        with pytest.raises(coldq.InvalidInput, match="puts a learner on a network"):
            coldq.simulate(player, problem, [0])
    with pytest.raises(
        coldq.InvalidInput, match="keep may name decisions, queue, multipliers, margin, but"
    ):
        coldq.simulate(learner, TimeVarying(horizon=30), [0], keep="agent_loss")
    with pytest.raises(coldq.InvalidInput, match="agents must be a whole number, at least 1"):
        TimeVarying(agents=0)


def test_agents_that_talk_end_up_closer_together() -> None:
    problem = TimeVarying(horizon=60, agents=6)
    learner = coldq.COLDQ.for_problem(problem)
    spread = []
    for graph in (np.zeros((6, 6)), networks.ring(6), networks.complete(6)):
        network = coldq.Decentralised(learner, networks.metropolis(graph))
        trace = coldq.simulate(network, problem, range(4), keep="decisions")
        assert trace.decisions is not None
        spread.append(trace.decisions.std(axis=2).mean())
    assert spread[0] > 1.05 * spread[1] > 1.05 * spread[2]


def test_a_network_runs_with_late_feedback_and_the_same_bits_in_any_batch() -> None:
    learner = coldq.Decentralised(
        coldq.COLDQ.for_problem(SMALL), networks.uniform(networks.path(3))
    )
    many = coldq.simulate(learner, SMALL, range(4), delay=2, keep="decisions")
    one = coldq.simulate(learner, SMALL, [2], delay=2, keep="decisions")
    assert many.decisions is not None
    assert one.decisions is not None
    assert many.decisions[2].tobytes() == one.decisions[0].tobytes()
    assert many.loss[2].tobytes() == one.loss[0].tobytes()
    assert many.violation[2].tobytes() == one.violation[0].tobytes()


def test_the_own_violation_is_that_of_each_agent_s_own_rows() -> None:
    learner = coldq.Decentralised(
        coldq.COLDQ.for_problem(SMALL), networks.metropolis(networks.ring(3))
    )
    trace = coldq.simulate(learner, SMALL, seeds=[3, 8], keep=["decisions"])
    assert trace.decisions is not None and trace.own_violation is not None
    for k, seed in enumerate((3, 8)):
        stream = SMALL.start((seed,))
        for t in range(1, SMALL.horizon + 1):
            g = stream.reveal(t, trace.decisions[k : k + 1, t - 1]).constraint
            over = np.maximum(g.value(trace.decisions[k, t - 1])[0], 0.0)  # agents, rows
            np.testing.assert_allclose(trace.own_violation[k, t - 1], over.mean(axis=0), atol=1e-12)


def test_the_mean_of_agents_functions_is_that_of_their_values_and_slopes() -> None:
    rng = np.random.default_rng(6)
    a, labels = rng.standard_normal((3, 5, 2)), rng.choice([-1.0, 1.0], (3, 5))

    def margins(x: np.ndarray) -> np.ndarray:
        return labels * np.einsum("amk,...ak->...am", a, x)

    def value(x: np.ndarray) -> np.ndarray:
        return np.log1p(np.exp(-margins(x))).mean(axis=-1)

    def gradient(x: np.ndarray) -> np.ndarray:
        share = -labels / (1.0 + np.exp(margins(x)))
        return np.einsum("amk,...am->...ak", a, share) / 5.0

    loss = coldq.Smooth(value, gradient, vectorised=True)
    rows = coldq.Affine([[[1.0, 1.0]]] * 3, [[0.2], [0.1], [0.3]])
    whole = networks.network_feedback(coldq.Feedback(loss, rows), (3,))
    for x in rng.standard_normal((5, 2)):
        each = [np.log1p(np.exp(-labels[i] * (a[i] @ x))).mean() for i in range(3)]
        assert whole.loss.value(x) == pytest.approx(np.mean(each), rel=1e-12)
        step = 1e-6 * np.eye(2)
        slope = [(whole.loss.value(x + e) - whole.loss.value(x - e)) / 2e-6 for e in step]
        np.testing.assert_allclose(whole.loss.gradient(x), slope, atol=1e-8)
    # The best common decision, against a fine grid of the feasible ones.
    box = coldq.Box(-1.0, 1.0, dim=2)
    best, exists = nearest_minimiser(whole, box, np.zeros(2))
    assert exists
    grid = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 401)] * 2), axis=-1).reshape(-1, 2)
    grid = grid[grid.sum(axis=1) <= 0.1]
    assert whole.loss.value(best) <= whole.loss.value(grid).min() + 1e-9
    assert best.sum() <= 0.1 + 1e-9
