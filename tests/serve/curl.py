"""As much of curl as docs/live-use.md uses, for machines without it: tests need pip alone."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

NEEDED = "--json"  # which curl has since 7.82


def place(folder: Path) -> Path | None:
    """A folder for the path with a stand-in for curl, None if the machine has its own."""
    own = shutil.which("curl")
    if own is not None:
        told = subprocess.run([own, "--help", "all"], capture_output=True, text=True, check=False)
        if NEEDED in told.stdout:
            return None
    stand_in = folder / "bin" / "curl"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__)}" "$@"\n')
    stand_in.chmod(0o755)
    return stand_in.parent


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--silent", "--show-error", "--fail"):
        parser.add_argument(name, action="store_true")
    for name in ("--header", "--json", "--request", "--output"):
        parser.add_argument(name)
    parser.add_argument("url")
    given = parser.parse_args(arguments)
    headers = dict([given.header.split(": ", 1)] if given.header else [])
    if given.json is not None:
        headers["Content-Type"] = "application/json"
    method = given.request or ("GET" if given.json is None else "POST")
    content = None if given.json is None else given.json.encode()
    asked = Request(given.url, content, headers, method=method)
    try:
        answer = build_opener(ProxyHandler({})).open(asked)
    except HTTPError as refused:
        answer = refused
    except URLError:
        return 7
    if given.output is None:
        sys.stdout.write(answer.read().decode())
    return 22 if given.fail and answer.status >= 400 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
