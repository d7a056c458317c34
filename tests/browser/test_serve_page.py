"""The server's page in a real browser: live plots, and nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import coldq
from tests.agent.feeds import LEARNER, measured
from tests.chromium import PATIENCE
from tests.serve.running import TOKEN, client

MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2}


def play(server: Any, name: str) -> None:
    decision = server.post(f"/agents/{name}/decide").json()
    loss, rows = measured(decision["round"], decision["x"])
    told = {"loss": coldq.describe(loss), "constraint": coldq.describe(rows)}
    server.put(f"/agents/{name}/rounds/{decision['round']}/feedback", json=told)


def test_the_page_draws_every_agent_and_what_it_does_next(browser: Any) -> None:
    with client() as server:
        for name in ("pump", "fan"):
            server.put(f"/agents/{name}", json=MADE)
            for _ in range(5):
                play(server, name)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        complaints: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(str(server.base_url))
        page.locator("#note", has_text="token").wait_for()
        assert page.locator("section").count() == 0
        page.fill("#token", TOKEN)
        page.click("button")
        page.wait_for_selector("section[data-agent=pump] polyline")
        assert page.locator("section").count() == 2
        captions = page.locator("section[data-agent=fan] figcaption").all_inner_texts()
        shown = [words.split(":")[0] for words in captions]
        assert shown == ["decisions", "loss", "violation", "queue"]
        lines = page.locator("section[data-agent=fan] figure").nth(0).locator("polyline")
        points = lines.nth(2).get_attribute("points")
        assert lines.count() == 3 and len(points.split()) == 5
        play(server, "fan")
        page.wait_for_selector("section[data-agent=fan][data-rounds='6']")
        assert len(lines.nth(2).get_attribute("points").split()) == 6
        assert complaints == []
        assert all(url.startswith((str(server.base_url), "data:")) for url in asked)
        page.close()


def test_an_agent_that_cannot_be_shown_hides_no_other(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database" * 500)
    with client(tmp_path, token=None) as server:
        server.put("/agents/good", json=MADE)
        for _ in range(5):  # a line of one point would not be seen
            play(server, "good")
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(str(server.base_url))
        page.wait_for_selector("section[data-agent=good] polyline")
        assert "not the file of an agent" in page.locator("main p").inner_text()
        page.close()
