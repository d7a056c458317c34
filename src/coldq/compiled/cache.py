"""Object code on disk: a file is whole and of this build, or it is as if it were absent.

A file's name holds the kernel, a digest of what it is compiled from and one of what compiles it for
which processor. Its content begins with a digest of the rest and of the name. It is written beside
its place and moved there. So whoever reads a file, however many processes write, are killed or
fill the disk meanwhile, gets code that fits or compiles.

Folders, in this order: ``COLDQ_CACHE_DIR``, if set, and no other; else ``NUMBA_CACHE_DIR``, if set;
else beside the package, for images that carry a warmed cache, and the user's own cache folder.
Kernels are read from any of them and written to the first that can be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from coldq.compiled import machine
from coldq.errors import warn
from coldq.files import locked

if TYPE_CHECKING:
    from coldq.compiled.kernel import Kernel

MAGIC = b"coldq kernel 2\n"
DIGEST = 32  # bytes
UNUSED = 30 * 86400.0  # seconds without use after which another build's kernel may go
ABANDONED = 3600.0  # the same of a file whose writer was killed
PATIENCE = 120.0  # seconds that one process waits for another that compiles
OWN = Path(__file__).parent.parent / "__pycache__" / "kernels"


def load_or_compile(kernel: Kernel) -> int:
    """The address of a kernel's code: from the cache, from whoever compiles it now, or compiled."""
    file = file_name(kernel)
    places = folders()
    found = _load(kernel.name, file, places)
    if found is not None:
        return found
    with _turn(places, file):
        found = _load(kernel.name, file, places)  # by whoever had its turn before
        if found is not None:
            return found
        from coldq.compiled import compiler

        try:
            code = compiler.object_code(kernel)
            loaded = machine.load(kernel.name, code)
        except Exception as error:
            # A Numba or llvmlite to come that lacks what object code takes, or needs more passes.
            _warn_unknown(f"{type(error).__name__}: {error}")
            return compiler.in_memory(kernel)
        _store(file, seal(file, code), places)
    return loaded


def file_name(kernel: Kernel) -> str:
    return f"{kernel.name}-{kernel.meaning().hex()}-{build()}.kernel"


@cache
def build() -> str:
    """A digest of what turns a kernel's meaning into code, and of the processor it is for."""
    here = Path(__file__).parent
    parts = [
        sys.version,
        *(f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite")),
        *machine.processor(),
        *(f"{k}={v}" for k, v in sorted(os.environ.items()) if k in SWITCHES),
    ]
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8)
    for file in sorted(here.glob("*.py")):  # instructions of the processor are written there too
        digest.update(file.read_bytes())
    return digest.hexdigest()


# What else changes the code that Numba makes.
SWITCHES = frozenset(
    f"NUMBA_{name}" for name in (
        "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "DEBUG",
        "FULL_TRACEBACKS", "DISABLE_INTEL_SVML", "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS",
    )
)  # fmt: skip


def folders() -> list[Path]:
    """Where kernels may be, in the order in which they are looked for."""
    for name, inner in (("COLDQ_CACHE_DIR", ""), ("NUMBA_CACHE_DIR", "coldq")):
        given = os.environ.get(name)
        if given:
            return [Path(given) / inner]
    places = [OWN]
    with contextlib.suppress(RuntimeError):  # no home
        places.append(_user_folder() / "coldq")
    return places


def _user_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def seal(file: str, code: bytes) -> bytes:
    """The content of a cache file."""
    return _head(file, code) + code


def unseal(file: str, content: bytes) -> bytes | None:
    """The object code; None if the content is not what was sealed."""
    start = len(MAGIC) + DIGEST
    code = content[start:]
    return code if content[:start] == _head(file, code) else None


def _head(file: str, code: bytes) -> bytes:
    key = hashlib.sha256(file.encode()).digest()
    return MAGIC + hashlib.blake2b(code, digest_size=DIGEST, key=key).digest()


def _load(name: str, file: str, places: list[Path]) -> int | None:
    for place in places:
        try:
            content = (place / file).read_bytes()
        except OSError:
            continue
        code = unseal(file, content)
        if code is None:
            continue
        try:
            loaded = machine.load(name, code)
        except RuntimeError:  # whole, but it needs what this process does not have
            continue
        _note_use(place / file)
        return loaded
    return None


def _note_use(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > 86400.0:
            os.utime(path)


def _store(file: str, content: bytes, places: list[Path]) -> None:
    """Write a file to the first folder that takes it; warn if none does."""
    for place in places:
        beside = place / f"{file}.{os.urandom(4).hex()}.tmp"
        try:
            place.mkdir(parents=True, exist_ok=True)
            beside.touch(exist_ok=False)
        except OSError:
            continue
        try:
            beside.write_bytes(content)
            beside.replace(place / file)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            continue
        _tidy(place, file)
        return
    _warn_uncached()


def _tidy(place: Path, file: str) -> None:
    """Remove what killed writers left, and other builds' kernels that nobody uses any more.

    Beside the package only its own builds are, so there what it is no longer compiled from goes at
    once. Other processors and versions that share a folder keep theirs.
    """
    now = time.time()
    name, meaning, _ = file.removesuffix(".kernel").rsplit("-", 2)
    for path in place.glob("*.kernel*"):
        with contextlib.suppress(OSError):
            age = now - path.stat().st_mtime
            other = re.fullmatch(rf"{re.escape(name)}-([0-9a-f]+)-[0-9a-f]+\.kernel", path.name)
            replaced = place == OWN and other is not None and other[1] != meaning
            if age > ABANDONED if path.suffix == ".tmp" else replaced or age > UNUSED:
                path.unlink()


@cache
def _warn_uncached() -> None:
    warn(
        "coldq found no writable folder for its compiled kernels, so they are compiled anew in "
        "every process (some seconds). Set COLDQ_CACHE_DIR to a writable folder to keep them.",
        RuntimeWarning,
    )


@cache
def _warn_unknown(reason: str) -> None:
    warn(
        f"coldq cannot keep its compiled kernels with Numba {version('numba')} and llvmlite "
        f"{version('llvmlite')}, so they are compiled anew in every process, which takes some "
        f"seconds ({reason})",
        RuntimeWarning,
    )


@contextlib.contextmanager
def _turn(places: list[Path], file: str) -> Iterator[None]:
    """Let one process compile a kernel while others that want the same wait for it, within reason.

    The lock is that of the system on a file beside the kernel's, which goes with the turn. A holder
    that is killed lets go of it, and the file may be taken. Other kernels have other turns.
    """
    turn, handle = _turn_of(places, file), None
    until = time.monotonic() + PATIENCE
    try:
        while turn is not None and handle is None and time.monotonic() < until:
            if any((place / file).exists() for place in places):
                break
            try:
                handle = locked(turn)
            except BlockingIOError:
                time.sleep(0.02)
            except (ImportError, OSError):  # a system or a file system without locks
                break
        yield
    finally:
        if handle is not None and turn is not None:
            with contextlib.suppress(OSError):
                turn.unlink()  # before the lock goes, so that nobody takes a file without a name
            os.close(handle)


def _turn_of(places: list[Path], file: str) -> Path | None:
    for place in places:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place / f"{file}.turn.tmp"
    return None
