"""Where results come from: the code, the day and the processor."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from coldq.base.system import cores

CPU_FILE = Path("/proc/cpuinfo")
PROGRAM_TIMEOUT = 10.0  # that another program may take to answer


@dataclass(frozen=True)
class Origin:
    """Which code made a result, on which day, and on what.

    `commit` is that of the checkout which holds the code, with a + where files in it are changed;
    empty where the code lies in none.
    """

    commit: str
    date: str
    processor: str
    cores: int
    system: str


def origin() -> Origin:
    """The code, day and processor of this process.

    >>> from coldq.paper.origin import origin
    >>> origin().cores > 0, len(origin().date)
    (True, 10)
    """
    return Origin(
        commit(Path(__file__).parent),
        datetime.now(UTC).date().isoformat(),
        processor(),
        cores(),
        f"{platform.system()}, {platform.machine()}",
    )


def commit(folder: Path) -> str:
    """The commit of the checkout that tracks this folder, with a + where files are changed."""
    if not _said("git", "-C", folder, "ls-files", "."):  # nothing of it is in any checkout
        return ""
    changed = _said("git", "-C", folder, "status", "--porcelain", "--untracked-files=no")
    return _said("git", "-C", folder, "rev-parse", "--short=12", "HEAD") + "+" * bool(changed)


def processor() -> str:
    """The processor's model, or else its architecture."""
    try:
        lines = CPU_FILE.read_text(errors="replace").splitlines()
    except OSError:  # no Linux
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    apple = ("sysctl", "-n", "machdep.cpu.brand_string") if platform.system() == "Darwin" else ()
    return next(named, "") or _said(*apple) or platform.processor() or platform.machine()


def _said(*words: str | Path) -> str:
    """What a program prints; nothing if it is not there or fails."""
    if not words:
        return ""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
