"""The lines of the container file, run as they are written: ``make check SUITE=container``.

A fresh folder stands in for the image and a fresh environment for its Python. Absolute paths that
the file sets are below that folder; the commands are the file's own. What is not understood, or
does not work, or is not there, is an error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import httpx

import coldq
from tests.agent.feeds import LEARNER, measured
from tests.processes import HANGING

ROOT = Path(__file__).parents[2]
IGNORED = (ROOT / ".dockerignore").read_text().replace("**/", "").split()


def instructions(text: str) -> list[tuple[str, str]]:
    """The words that begin the lines, and what follows them."""
    joined = re.sub(r"\\\n", "", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


class Image:
    """What the instructions make of a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.place, self.user = root, root, None
        self.command: list[str] = []
        self.check: list[str] = []
        self.volumes: list[Path] = []
        inherited = {name: v for name, v in os.environ.items() if not name.startswith("COLDQ_")}
        inherited.pop("PYTHONPATH", None)  # the package that is installed, no other
        self.environment = {**inherited, "HOME": str(root)}

    def inside(self, path: str) -> Path:
        """A path of the image."""
        return self.root / path.lstrip("/") if path.startswith("/") else self.place / path

    def run(self, command: list[str]) -> subprocess.Popen[str]:
        as_user: dict[str, Any] = {}
        if self.user is not None and os.geteuid() == 0:
            as_user = {"user": self.user, "group": "nogroup", "extra_groups": []}
        return subprocess.Popen(
            command, cwd=self.place, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **as_user,
        )  # fmt: skip

    def obey(self, word: str, rest: str) -> None:
        """One instruction."""
        match word:
            case "FROM":
                assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", rest), rest
                venv.create(self.root / "venv", with_pip=True)
                path = f"{self.root / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
                self.environment |= {"PATH": path, "VIRTUAL_ENV": str(self.root / "venv")}
            case "WORKDIR":
                self.place = self.inside(rest)
                self.place.mkdir(parents=True)
            case "COPY":
                source, target = rest.split()
                shutil.copytree(
                    ROOT / source,
                    self.inside(target),
                    ignore=shutil.ignore_patterns(*IGNORED),
                    dirs_exist_ok=True,
                )
            case "ENV":
                for pair in shlex.split(rest):
                    name, _, value = pair.partition("=")
                    inside = str(self.inside(value)) if value.startswith("/") else value
                    self.environment[name] = inside
            case "RUN":
                process = self.run(["sh", "-c", rest])
                output = process.communicate(timeout=HANGING)[0]
                if process.returncode:
                    sys.exit(f"RUN {rest}\n{output}\nended with {process.returncode}")
            case "USER":
                self.user = rest
            case "VOLUME":
                self.volumes.append(self.inside(rest))
            case "EXPOSE":
                assert rest == self.environment["COLDQ_PORT"], rest
            case "HEALTHCHECK":
                self.check = json.loads(rest.partition("CMD ")[2])
            case "CMD":
                self.command = json.loads(rest)
            case _:
                sys.exit(f"this does not know what {word} {rest} means")


def used(image: Image) -> None:
    """The command serves, as its user, and keeps its agents in a volume."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    image.environment |= {"COLDQ_PORT": str(port), "COLDQ_TOKEN": "secret"}  # docker run -e
    with image.run(image.command) as running:
        try:
            headers = {"Authorization": "Bearer secret"}
            where = f"http://127.0.0.1:{port}"
            with httpx.Client(
                base_url=where, headers=headers, timeout=HANGING, trust_env=False
            ) as client:
                wait_until_healthy(client, running)
                check = image.run(image.check)
                assert "ready" in check.communicate(timeout=HANGING)[0] and not check.returncode
                made = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
                assert client.put("/agents/pump", json=made).status_code == 201
                x = client.post("/agents/pump/decide").json()["x"]
                loss, rows = measured(1, x)
                told = {"loss": coldq.describe(loss), "constraint": coldq.describe(rows)}
                answer = client.put("/agents/pump/rounds/1/feedback", json=told)
                assert answer.json() == {"round": 1, "status": "applied"}, answer.text
            running.send_signal(signal.SIGTERM)
            output = running.communicate(timeout=HANGING)[0]
            assert image.run(image.check).wait() == 1  # nobody is there any more
            assert running.returncode == 0 and "stopped by SIGTERM" in output, output
        finally:
            running.kill()
    (volume,) = image.volumes
    assert volume == Path(image.environment["COLDQ_FOLDER"])
    with coldq.Agent.open(volume / "pump.db") as agent:
        assert agent.state.t == 2


def wait_until_healthy(client: httpx.Client, running: subprocess.Popen[str]) -> None:
    while True:
        assert running.poll() is None, running.stdout and running.stdout.read()
        try:
            assert client.get("/health").status_code == 200
            return
        except httpx.ConnectError:
            time.sleep(0.1)


def main() -> None:
    """Every line, and then what the last of them starts."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        root.chmod(0o755)  # for a user who is nobody
        image = Image(root)
        for word, rest in instructions((ROOT / "Containerfile").read_text()):
            begun = time.perf_counter()
            image.obey(word, rest)
            print(f"{time.perf_counter() - begun:6.1f} s  {word} {rest}", flush=True)
        used(image)
    print("its command serves, as its user, keeps its agents in the volume and ends in order")


if __name__ == "__main__":
    main()
