"""Agents over HTTP: what they do in Python they do there, and nobody gets in without a token."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import coldq
from coldq.agent.store import Store
from coldq.serve.counts import MAX_LINES_A_MINUTE
from coldq.serve.guard import OPEN_TO_ALL, Guard
from tests.agent.feeds import LEARNER, bits, measured
from tests.processes import HANGING
from tests.serve.running import TOKEN, client

MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2}


def told(round: int, x: Any) -> dict[str, Any]:
    loss, constraint = measured(round, np.array(x))
    return {"loss": coldq.describe(loss), "constraint": coldq.describe(constraint)}


@pytest.fixture(params=["memory", "disk"])
def server(request, tmp_path: Path):
    with client(None if request.param == "memory" else tmp_path) as made:
        yield made


def test_decisions_over_http_are_those_of_an_agent_bit_for_bit(server) -> None:
    assert server.put("/agents/pump", json=MADE).status_code == 201
    one = coldq.Agent(LEARNER, 2)
    for round in range(1, 8):
        answer = server.put(f"/agents/pump/rounds/{round}").json()
        decision = one.decide(round)
        assert answer == {"round": round, "x": decision.x.tolist()}
    for round in (2, 1, 4, 3, 7, 5):
        x = one.decide(round).x if round in one.in_flight else None
        body = told(round, x)
        receipt = one.observe(round, *measured(round, x))
        path = f"/agents/pump/rounds/{round}/feedback"
        assert server.put(path, json=body).json() == receipt._asdict()
        assert server.put(path, json=body).json() == {"round": round, "status": "repeated"}
    assert server.put("/agents/pump/rounds/6/skip").json() == {"round": 6, "status": "skipped"}
    one.skip(6)
    shown = server.get("/agents/pump").json()
    assert shown["x"] == one.state.x.tolist() and shown["round"] == 7 and shown["in_flight"] == []
    assert server.post("/agents/pump/decide").json()["round"] == 8
    history = server.get("/agents/pump/history", params={"last": 3}).json()
    assert history["round"] == one.history(3).columns["round"].tolist()
    assert history["loss"][:1] == one.history(3).columns["loss"].tolist()[:1]


def test_a_learner_of_values_alone_says_where_it_wants_them(server) -> None:
    learner = coldq.TwoPoint(coldq.OGD(LEARNER.domain, eta=0.1))
    state = learner.init(0)
    made = {"learner": coldq.describe(learner), "n_constraints": 0}
    assert server.put("/agents/probe", json=made).status_code == 201
    for round in range(1, 5):
        answer = server.post("/agents/probe/decide").json()
        assert answer == {"round": round, "x": state.x.tolist()}
        points = server.get("/agents/probe").json()["points"]
        assert points == state.points.tolist()
        loss = coldq.ValueAt(points, np.square(points).sum(axis=-1))
        path, body = f"/agents/probe/rounds/{round}/feedback", {"loss": coldq.describe(loss)}
        assert server.put(path, json=body).json() == {"round": round, "status": "applied"}
        state = learner.update(state, coldq.Feedback(loss, None))


def test_creating_again_changes_nothing_and_another_is_refused(server) -> None:
    assert server.put("/agents/a", json=MADE).status_code == 201
    server.post("/agents/a/decide")
    again = server.put("/agents/a", json=MADE)
    assert again.status_code == 200 and again.json()["round"] == 1
    other = MADE | {"learner": coldq.describe(coldq.RECOO(LEARNER.domain))}
    refused = server.put("/agents/a", json=other)
    assert refused.status_code == 409 and "with another learner" in refused.json()["error"]
    assert server.put("/agents/a", json=MADE | {"limit": 3}).status_code == 409
    assert server.get("/agents").json() == ["a"]


def test_what_is_odd_about_a_new_agent_is_said_in_the_answer(server) -> None:
    wide = coldq.Polytope(np.ones((1, 2)), [3e8], 0.0, [6e8, 0.6])
    learner = {"type": "SelfTuning", "violation_rate": 0.01, "domain": coldq.describe(wide)}
    with pytest.warns(coldq.UnlikelyUnits):
        answer = server.put("/agents/odd", json={"learner": learner, "n_constraints": 1})
    assert answer.status_code == 201
    (words,) = answer.json()["warnings"]
    assert "coordinate 0 is 3e+08 wide and coordinate 1 0.6" in words
    assert server.put("/agents/a", json=MADE).json()["warnings"] == []


def test_what_is_refused_is_a_sentence_and_changes_nothing(server) -> None:
    server.put("/agents/a", json=MADE)
    x = server.post("/agents/a/decide").json()["x"]
    before = server.get("/agents/a").json()
    good = told(1, x)
    requests = [
        ("PUT", "/agents/a/rounds/9/feedback", good, 422),
        ("PUT", "/agents/a/rounds/0/feedback", good, 422),
        ("PUT", "/agents/a/rounds/3", None, 422),
        ("PUT", "/agents/a/rounds/+1", None, 422),
        ("PUT", "/agents/a/rounds/%201", None, 422),
        ("PUT", "/agents/a/rounds/1_0", None, 422),
        ("PUT", "/agents/a/rounds/+1/skip", None, 422),
        ("GET", "/agents/a/history?last=%2B1", None, 422),
        ("PUT", "/agents/con", MADE, 422),
        ("PUT", "/agents/lpt1", MADE, 422),
        ("PUT", "/agents/c", MADE | {"n_constraints": True}, 422),
        ("PUT", "/agents/c", MADE | {"remember": True}, 422),
        ("PUT", "/agents/b/rounds/1/feedback", good, 404),
        ("PUT", "/agents/a/rounds/1/feedback", {"loss": 3}, 422),
        ("PUT", "/agents/a/rounds/1/feedback", good | {"more": 1}, 422),
        ("PUT", "/agents/a/rounds/1/feedback", good | {"loss": {"type": "os.system"}}, 422),
        ("PUT", "/agents/a/rounds/1/feedback", good | {"loss": {"type": "Box"}}, 422),
        ("PUT", "/agents/a/rounds/1/feedback", good | {"loss": coldq.describe(LEARNER)}, 422),
        ("PUT", "/agents/c", MADE | {"n_constraints": -1}, 422),
        ("PUT", "/agents/c", MADE | {"learner": {"type": "Linear", "c": [1.0]}}, 422),
        ("PUT", "/agents/c", MADE | {"learner": huge()}, 422),
        ("PUT", "/agents/c", MADE | {"late": "soon"}, 422),
        ("GET", "/agents/a/history?last=0", None, 422),
        ("GET", "/agents/none", None, 404),
    ]
    for method, path, body, code in requests:
        answer = server.request(method, path, json=body)
        assert answer.status_code == code, (path, answer.text)
        assert len(answer.json()["error"]) > 10
    for text in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"loss": ' + b"9" * 5000 + b"}", b""):
        assert server.put("/agents/a/rounds/1/feedback", content=text).status_code in (400, 422)
    for kind in ({"Content-Type": "text/plain"}, {}):
        text = json.dumps(good).encode()
        refused = server.put("/agents/a/rounds/1/feedback", content=text, headers=kind)
        assert refused.status_code == 422 and refused.json()["error"].startswith("body: ")
    assert server.get("/agents/a").json() == before and server.get("/agents").json() == ["a"]
    parts = (json.dumps(good).encode()[k : k + 50] for k in range(0, 10_000, 50))
    kind = {"Content-Type": "application/json; charset=utf-8"}
    answer = server.put("/agents/a/rounds/1/feedback", content=parts, headers=kind)
    assert answer.json()["status"] == "applied"  # in pieces, of a length that nobody said
    other = told(1, x) | {"loss": coldq.describe(coldq.Linear([1.0, 2.0, 3.0]))}
    assert server.put("/agents/a/rounds/1/feedback", json=other).status_code == 409


def huge() -> dict[str, Any]:
    return {"type": "OGD", "domain": box(10**9), "eta": 0.1}


def box(dim: Any, upper: float = 1.0) -> dict[str, Any]:
    return {"type": "Box", "lower": 0.0, "upper": upper, "dim": dim}


def test_a_few_bytes_build_nothing_that_is_large() -> None:
    hidden = {"dtype": "<i8", "shape": [], "base64": "AOH1BQAAAAA="}  # 100,000,000
    many = {"type": "Product", "domains": [{"type": "Simplex", "dim": 1000}] * 101}
    season = {"type": "Seasonal", "period": 10**8}
    steps = {"alpha": 1.0, "eta": 0.5, "gamma": 0.8}
    with client() as server:
        for domain in (box(10**8), box(1e8), box(hidden), many):
            made = {"learner": {"type": "OGD", "domain": domain, "eta": 0.1}, "n_constraints": 0}
            answer = server.put("/agents/a", json=made)
            assert answer.status_code == 422 and "dim" in answer.json()["error"]
        for learner in (
            {"type": "SelfTuning", "domain": box(2), "forecasts": [season]},
            {"type": "OGD", "domain": {"type": "TimeVarying", "horizon": 10**8}, "eta": 0.1},
        ):
            answer = server.put("/agents/a", json={"learner": learner, "n_constraints": 1})
            assert answer.status_code == 422, answer.text
        for learner in (  # sizes that are multiplied
            {"type": "OGD", "domain": box(50_000), "eta": [0.1] * 5000},
            {"type": "Wang2023", "domain": box(50_000), "horizon": 10, "delay": 5000, **steps},
        ):
            answer = server.put("/agents/a", json={"learner": learner, "n_constraints": 1})
            assert answer.status_code == 422, answer.text
            assert "the state of an agent may have at most" in answer.json()["error"]
        server.put("/agents/a", json=MADE)
        x = server.post("/agents/a/decide").json()["x"]
        for part in (box(10**8), season, {"type": "Stacked", "parts": [box(3)]}):
            for word in ("loss", "constraint", "forecast"):
                body = told(1, x) | {word: {"loss": part} if word == "forecast" else part}
                answer = server.put("/agents/a/rounds/1/feedback", json=body)
                assert "is no part of a feedback" in answer.json()["error"]


def test_only_sizes_are_bounded_and_any_key_is_answered_in_words() -> None:
    with client() as server:
        learner = {"type": "OGD", "domain": box(2, upper=10**6), "eta": 10**6}
        made = {"learner": learner, "n_constraints": 0}
        assert server.put("/agents/a", json=made).status_code == 201
        learners = {"\ud800": 10**6}, {"type": "\ud800"}, {"type": "OGD", "dim": "\ud800"}
        for body in (*(made | {"learner": learner} for learner in learners), made | {"\ud800": 1}):
            kind = {"Content-Type": "application/json"}
            answer = server.put("/agents/b", content=json.dumps(body).encode(), headers=kind)
            assert answer.status_code == 422 and len(answer.json()["error"]) > 10


def test_every_refusal_has_its_words_in_the_same_place() -> None:
    with client() as server:
        kind = {"Content-Type": "application/json"}
        broken = server.put("/agents/a", content=b"[" * 100_000, headers=kind)
        for answer, code in (
            (broken, 400),
            (server.get("/nothing"), 404),
            (server.delete("/agents/a"), 405),
        ):
            assert answer.status_code == code and list(answer.json()) == ["error"]
        assert server.delete("/agents/a").headers["allow"]
        for path in ("/agents/a", "/agents/a/rounds/1/feedback"):
            kind = {"Content-Type": "text/plain"}
            answer = server.put(path, content=json.dumps(MADE).encode(), headers=kind)
            assert answer.status_code == 422
            assert "Content-Type must be application/json" in answer.json()["error"]


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e%2fx", "a%2fb", "a%00b", "A", "-a", "a.db", "é", "a" * 65, "a b", "%0a"]
)
def test_no_name_reaches_the_file_system_unless_it_is_plain(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "agents"
    with client(inside) as server:
        assert server.put(f"/agents/{name}", json=MADE).status_code in (404, 405, 422)
        assert list(inside.iterdir()) == [] and list(tmp_path.iterdir()) == [inside]


def routes(app: Any) -> list[tuple[str, str]]:
    """Every path of an application, about an agent a and its round 1, with every method."""
    return [
        (route.path.replace("{name}", "a").replace("{round}", "1"), method)
        for route in app.routes
        for method in route.methods
    ]


def test_without_the_token_nothing_is_shown_or_done() -> None:
    with client() as server:
        server.put("/agents/a", json=MADE)
        for wrong in ({}, {"Authorization": "Bearer no"}, {"Authorization": TOKEN}):
            with httpx.Client(base_url=server.base_url, headers=wrong, trust_env=False) as bare:
                assert len(routes(server.app)) > 10
                for path, method in routes(server.app):
                    code = bare.request(method, path).status_code
                    open_to_all = path in OPEN_TO_ALL
                    assert (code != 401) == open_to_all, (method, path)
        assert server.get("/agents/a").json()["round"] == 0
    with client(token=None) as server:
        assert httpx.get(f"{server.base_url}/agents", trust_env=False).status_code == 200


def test_a_body_too_large_and_a_rate_too_high_are_refused() -> None:
    with client(largest_body=2000) as server:
        assert server.put("/agents/a", json=MADE | {"more": "x" * 3000}).status_code == 413
        parts = (b"x" * 500 for _ in range(20))
        assert server.put("/agents/a", content=parts).status_code == 413
        assert server.put("/agents/a", json=MADE).status_code == 201
    with client(rate=5.0) as server:
        codes = [server.get("/agents").status_code for _ in range(50)]
        assert codes[:5] == [200] * 5 and 429 in codes


def test_strangers_and_looks_at_health_spend_nothing_of_the_rate() -> None:
    with client(rate=1.0) as server:
        with httpx.Client(base_url=server.base_url, trust_env=False, timeout=HANGING) as stranger:
            for _ in range(20):
                assert stranger.get("/agents").status_code == 401
                assert stranger.get("/health").status_code == 200
        assert server.get("/agents").status_code == 200
        assert [server.get("/agents").status_code for _ in range(20)].count(429) > 0
        assert [server.get("/health").status_code for _ in range(20)] == [200] * 20


def test_a_length_beside_pieces_hides_no_body() -> None:
    body = json.dumps(MADE | {"more": "x" * 3000}).encode()
    lies = {"Content-Length": "5", "Transfer-Encoding": "chunked"}
    with client(largest_body=2000) as server:
        for path in ("/agents/a", "/agents/a/rounds/1/feedback"):
            answer = server.put(path, content=iter([body]), headers=lies)
            assert answer.status_code in (400, 413), answer.text  # as the parser of HTTP sees it
        assert server.get("/agents").json() == []


def test_a_request_that_the_server_cannot_wait_for_ends_without_an_error() -> None:
    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    async def given_up() -> None:
        async def reading(scope: Any, receive: Any, send: Any) -> None:
            await receive()

        guard = Guard(reading, token=None, largest_body=10, rate=None)
        scope = {"type": "http", "method": "PUT", "path": "/agents/a", "headers": []}
        task = asyncio.create_task(guard(scope, never, never))
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(given_up())


def test_idle_agents_are_evicted_and_come_back_as_they_were(tmp_path: Path) -> None:
    with client(tmp_path, resident=2) as server:
        for k in range(6):
            server.put(f"/agents/a{k}", json=MADE)
            x = server.post(f"/agents/a{k}/decide").json()["x"]
            server.put(f"/agents/a{k}/rounds/1/feedback", json=told(1, x))
        assert len(server.app.state.agents.resident_agents()) <= 2
        assert server.get("/agents").json() == [f"a{k}" for k in range(6)]
        assert server.get("/agents/a0").json()["round"] == 1
    with client(tmp_path) as server:  # another process, later
        assert server.post("/agents/a3/decide").json()["round"] == 2
    with coldq.Agent.open(tmp_path / "a3.db") as one:
        state = LEARNER.update(LEARNER.init(2), coldq.Feedback(*measured(1, LEARNER.init(2).x)))
        assert bits(one.state) == bits(state)


def test_a_damaged_file_is_said_and_the_others_are_served(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database" * 500)
    with client(tmp_path) as server:
        server.put("/agents/good", json=MADE)
        answer = server.post("/agents/bad/decide")
        assert answer.status_code == 503 and "not the file of an agent" in answer.json()["error"]
        assert server.post("/agents/good/decide").status_code == 200


def test_an_agent_that_cannot_be_evicted_fails_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wide = {"type": "OGD", "domain": box(50_000), "eta": 0.1}  # more than SQLite has in memory
    with client(tmp_path, resident=1) as server:
        assert server.put("/agents/b", json=MADE).status_code == 201
        x = server.post("/agents/b/decide").json()["x"]
        server.put("/agents/a", json={"learner": wide, "n_constraints": 0})
        with server.app.state.agents.get("a") as agent:
            for round in range(1, 5):
                agent.observe(agent.decide().round, coldq.Linear(np.full(50_000, -round)), None)
        for path in tmp_path.glob("a.db*"):
            whole = path.read_bytes()
            path.write_bytes(whole[:8192] + b"?" * (len(whole) - 8192))
        answer = server.put("/agents/b/rounds/1/feedback", json=told(1, x))
        assert answer.json() == {"round": 1, "status": "applied"}
        assert "agent a could not be closed in order" in caplog.text and "damaged" in caplog.text
        answer = server.post("/agents/a/decide")
        assert answer.status_code == 503 and "a.db is " in answer.json()["error"]


@pytest.mark.parametrize("leave", [Path.touch, lambda path: Store(path).close()])
def test_a_file_in_which_no_agent_began_is_begun_anew(tmp_path: Path, leave: Any) -> None:
    leave(tmp_path / "a.db")
    with client(tmp_path) as server:
        assert server.put("/agents/a", json=MADE).status_code == 201
        assert server.put("/agents/a", json=MADE).status_code == 200
        assert server.post("/agents/a/decide").json()["round"] == 1


def test_feedback_with_other_rows_than_an_agent_has_is_shown_as_unknown() -> None:
    row = coldq.describe(coldq.Affine([[1.0, 1.0]], [1.0]))
    many = coldq.describe(coldq.Affine(np.ones((3, 1, 2, 2)), np.ones((1, 3, 2))))
    with client() as server:
        made = {"learner": {"type": "OGD", "domain": box(2), "eta": 0.1}, "n_constraints": 2}
        server.put("/agents/a", json=made)
        for round, rows in enumerate([None, row, many], start=1):
            server.post("/agents/a/decide")
            body = {"loss": {"type": "Linear", "c": [1.0, 2.0]}, "constraint": rows}
            answer = server.put(f"/agents/a/rounds/{round}/feedback", json=body)
            assert answer.json()["status"] == "applied"
        history = server.get("/agents/a/history").json()
        assert history["violation"] == history["violation_2"] == [None, None, None]
        assert history["loss"] == [0.0, 0.0, 0.0]
        assert 'coldq_agent_last_loss{agent="a"} 0.0' in server.get("/metrics").text


def test_an_agent_at_work_for_long_holds_up_no_metrics(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coldq.agent.metrics.LOCK_TIMEOUT_SECONDS", 0.05)
    with client() as server:
        for name in ("busy", "pump"):
            server.put(f"/agents/{name}", json=MADE)
        with server.app.state.agents.resident_agents()["busy"]._lock:  # as while its disk hangs
            shown = server.get("/metrics", timeout=HANGING).text
        assert 'agent="pump"' in shown and 'agent="busy"' not in shown
        assert "agent busy is at work" in caplog.text
        assert 'agent="busy"' in server.get("/metrics").text


def test_a_long_step_in_memory_keeps_nobody_else_waiting() -> None:
    door, at_work = threading.Event(), threading.Event()

    class Slow(coldq.OGD):
        def update(self, *given: Any, **named: Any) -> Any:
            at_work.set()
            assert door.wait(HANGING)
            return super().update(*given, **named)

    with client() as server, ThreadPoolExecutor(2) as pool:
        slow = Slow(coldq.Box(0.0, 1.0, dim=2), eta=0.1)
        server.app.state.agents._open["slow"] = coldq.Agent(slow, 0)
        server.post("/agents/slow/decide")
        body = {"loss": {"type": "Linear", "c": [1.0, 2.0]}}
        told = pool.submit(server.put, "/agents/slow/rounds/1/feedback", json=body)
        assert at_work.wait(HANGING)
        again = pool.submit(server.post, "/agents/slow/decide")  # waits for its turn
        server.put("/agents/quick", json=MADE)
        for path in ("/live", "/agents/quick"):
            assert server.get(path).status_code == 200
        assert not told.done() and not again.done()
        door.set()
        assert told.result().json()["status"] == "applied" and again.result().json()["round"] == 2


def test_a_large_feedback_is_read_beside_the_loop_and_counts_the_same() -> None:
    learner, count = coldq.OGD(coldq.Box(0.0, 1.0, dim=5000), eta=0.1), 5000
    slopes = np.linspace(-1.0, 1.0, count)
    state = learner.update(learner.init(0), coldq.Feedback(coldq.Linear(slopes), None))
    with client() as server:
        made = {"learner": coldq.describe(learner), "n_constraints": 0}
        assert server.put("/agents/a", json=made).status_code == 201
        server.post("/agents/a/decide")
        for words in ({"loss": 3}, {"loss": coldq.describe(coldq.Linear(slopes)), "more": "x"}):
            body = words | {"pad": "x" * 20_000}
            assert server.put("/agents/a/rounds/1/feedback", json=body).status_code == 422
        body = {"loss": {"type": "Linear", "c": slopes.tolist()}}
        assert server.put("/agents/a/rounds/1/feedback", json=body).json()["status"] == "applied"
        assert server.post("/agents/a/decide").json()["x"] == state.x.tolist()


def test_what_is_refused_or_failed_leaves_some_lines_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise coldq.NotWritten("a.db could not be written: the disk is full")

    with client(tmp_path) as server:
        server.put("/agents/a", json=MADE)
        body = told(1, server.post("/agents/a/decide").json()["x"])
        with monkeypatch.context() as patch:
            patch.setattr(Store, "settle", full)
            for _ in range(3):
                assert server.put("/agents/a/rounds/1/feedback", json=body).status_code == 507
        for _ in range(MAX_LINES_A_MINUTE + 30):
            assert server.get("/agents/none").status_code == 404
        assert server.get("/agents/a%0Aforged/line").status_code == 404
        metrics = server.get("/metrics").text
    said = [record.getMessage() for record in caplog.records if record.name == "coldq.serve"]
    assert [words for words in said if "with 507" in words] == [
        "PUT '/agents/a/rounds/1/feedback' was refused with 507: a.db could not be written: the "
        "disk is full"
    ] * 3
    assert sum("with 404" in words for words in said) == MAX_LINES_A_MINUTE
    assert not any("\n" in words for words in said)
    route = 'route="/agents/{name}/rounds/{round}/feedback"'
    assert f'coldq_http_requests_total{{code="507",method="PUT",{route}}} 3.0' in metrics
    assert f"coldq_http_seconds_count{{{route}}} 3.0" in metrics


def test_commits_are_counted_with_their_times_and_failures(tmp_path: Path) -> None:
    with client(tmp_path) as server:
        server.put("/agents/a", json=MADE)
        body = told(1, server.post("/agents/a/decide").json()["x"])
        assert server.put("/agents/a/rounds/1/feedback", json=body).status_code == 200
        other = told(2, server.post("/agents/a/decide").json()["x"])
        kept = (tmp_path / "a.db").rename(tmp_path / "kept")
        agent = server.app.state.agents._open["a"]
        with pytest.raises(coldq.NotWritten):
            agent.observe(2, *measured(2, agent.decide(2).x))
        kept.rename(tmp_path / "a.db")
        assert server.put("/agents/a/rounds/2/feedback", json=other).status_code == 200
        metrics = server.get("/metrics").text
    assert "coldq_commit_seconds_count 2.0" in metrics
    assert "coldq_commits_failed_total 1.0" in metrics


def test_ready_says_whether_it_ends_and_whether_its_folder_takes_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coldq.serve.readiness.MAX_AGE_SECONDS", 0.0)
    folder = tmp_path / "agents"
    with client(folder) as server:
        assert server.get("/live").json() == {"status": "ok"}
        assert server.get("/ready").json() == {"status": "ready"}
        moved = folder.rename(tmp_path / "gone")
        answer = server.get("/ready")
        assert answer.status_code == 503 and "cannot be written to" in answer.json()["error"]
        assert server.get("/live").status_code == 200
        moved.rename(folder)
        assert server.get("/ready").status_code == 200
        assert list(folder.iterdir()) == []
        server.app.state.ending = lambda: True
        answer = server.get("/ready")
        assert answer.status_code == 503 and answer.json()["error"] == "the server is ending"


def test_a_disk_that_hangs_is_not_ready_and_one_probe_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, begun = threading.Event(), []

    def hangs(folder: Path) -> str:
        begun.append(folder)
        door.wait(HANGING)
        return ""

    monkeypatch.setattr("coldq.serve.readiness._written", hangs)
    monkeypatch.setattr("coldq.serve.readiness.DISK_TIMEOUT_SECONDS", 0.01)
    with client(tmp_path) as server:
        for _ in range(5):
            answer = server.get("/ready")
            assert answer.status_code == 503 and "has not taken a file" in answer.json()["error"]
        assert len(begun) == 1
        door.set()


def test_metrics_have_few_series_however_many_agents_and_rows_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coldq.agent.metrics.MAX_SERIES", 60)
    learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    rows = coldq.Affine(np.ones((50, 2)), np.ones(50))
    with client() as server:
        for k in range(30):
            agent = coldq.Agent(learner, 50)
            agent.observe(agent.decide().round, coldq.Linear([1.0, 2.0]), rows)
            server.app.state.agents._open[f"a{k:02}"] = agent
        for _ in range(2):
            text = server.get("/metrics").text
            shown = {line.split('"')[1] for line in text.splitlines() if "{agent=" in line}
            assert shown == {"a00", "a01"}
            assert "coldq_agents_resident 30.0" in text and "coldq_agents_left_out 28.0" in text
            assert 'row="20"' in text and 'row="21"' not in text


def test_an_agent_without_metrics_hides_no_other() -> None:
    learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=2), eta=0.1)
    with client() as server:
        server.app.state.agents._open["none"] = coldq.Agent(learner, 0, batch=(0,))
        server.put("/agents/pump", json=MADE)
        assert 'coldq_agent_round{agent="pump"} 0.0' in server.get("/metrics").text


def test_what_nobody_foresaw_is_said_as_a_refusal_is_and_the_server_goes_on() -> None:
    class Broken(coldq.OGD):
        def update(self, *_: Any, **__: Any) -> Any:
            raise np.linalg.LinAlgError("did not converge")

    with client() as server:
        broken = Broken(coldq.Box(0.0, 1.0, dim=2), eta=0.1)
        server.app.state.agents._open["a"] = coldq.Agent(broken, 0)
        before = server.post("/agents/a/decide").json()
        body = {"loss": {"type": "Linear", "c": [1.0, 2.0]}}
        answer = server.put("/agents/a/rounds/1/feedback", json=body)
        assert answer.status_code == 500 and "LinAlgError" in answer.json()["error"]
        assert server.post("/agents/a/decide").json() == before


def test_a_head_is_answered_as_what_it_is_the_head_of() -> None:
    with client() as server:
        server.put("/agents/a", json=MADE)
        for path in ("/health", "/", "/page.js", "/agents", "/agents/a", "/agents/none"):
            whole, head = server.get(path), server.head(path)
            assert head.status_code == whole.status_code and head.content == b""
            for name in ("content-type", "content-length"):
                assert head.headers[name] == whole.headers[name]
        assert server.head("/agents/a/decide").status_code == 405


def test_health_metrics_page_and_the_interface_itself() -> None:
    with client() as server:
        server.put("/agents/pump", json=MADE)
        x = server.post("/agents/pump/decide").json()["x"]
        server.put("/agents/pump/rounds/1/feedback", json=told(1, x))
        assert server.get("/health").json() == {"status": "ok"}
        metrics = server.get("/metrics").text
        assert 'coldq_agent_applied_total{agent="pump"} 1.0' in metrics
        assert 'coldq_agent_last_queue{agent="pump",row="2"}' in metrics
        page = server.get("/")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for part in ("/", "/page.js", "/page.css"):
            text = server.get(part).text.replace("http://www.w3.org/2000/svg", "")
            assert "http://" not in text and "https://" not in text and "//cdn" not in text
        interface = server.get("/openapi.json").json()
        assert "/agents/{name}/rounds/{round}/feedback" in interface["paths"]
