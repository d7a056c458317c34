"""A headless Chromium for the tests that look at pages; without one they fail, and say why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import HANGING

ARGUMENTS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 1000.0 * HANGING  # milliseconds


@contextmanager
def launched() -> Iterator[Any]:
    """The browser, for as long as it is looked at."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("the browser tests need Playwright: pip install 'coldq[browser]'")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None or not Path(chromium).exists():
        pytest.fail("the browser tests need chromium on the path, or its file named by CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS), timeout=PATIENCE
        )
        yield browser
        browser.close()
