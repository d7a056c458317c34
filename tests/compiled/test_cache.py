"""A file of the cache is whole and of this build, or it is as if it were absent."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numba.core import base, config, ssa, typeinfer

import coldq
from coldq.compiled import Kernel, cache, calls, compiler
from coldq.files import locked
from tests.compiled import small
from tests.compiled.cold_starts import SMALL, play

V = np.arange(3.0)


def fresh(kernel: Kernel) -> Kernel:
    """The same kernel, not yet built."""
    return Kernel(kernel.function, signature=kernel.signature, layout=kernel.layout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for kernels; the way into them is there already."""
    calls.ONCE.address()
    monkeypatch.setenv("COLDQ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are compiled from now on."""
    names, compile_it = [], compiler.object_code

    def noted(kernel: Kernel) -> bytes:
        names.append(kernel.name)
        return compile_it(kernel)

    monkeypatch.setattr(compiler, "object_code", noted)
    return names


def test_a_kernel_is_compiled_once_and_found_afterwards(folder, compilations) -> None:
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert [path.name for path in folder.iterdir()] == [cache.file_name(small.three)]
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert compilations == ["three"]


def others(content: bytes) -> bytes:
    """Whole code, but of another kernel."""
    code = compiler.object_code(small.guarded_quotients)
    return cache.seal(cache.file_name(small.guarded_quotients), code)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "cut in its digest": lambda content: content[:30],
    "cut after its digest": lambda content: content[: len(cache.MAGIC) + cache.DIGEST],
    "cut in its first line": lambda content: content[:10],
    "cut in the middle": lambda content: content[: len(content) // 2],
    "without its last byte": lambda content: content[:-1],
    "with a byte more": lambda content: content + b"\0",
    "with a bit turned": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "zeros": lambda content: bytes(len(content)),
    "junk": lambda content: random.Random(1).randbytes(len(content)),
    "text": lambda content: b"not a kernel\n" * 100,
    "another kernel's": others,
    "of a later format": lambda content: content.replace(b"kernel 2", b"kernel 3", 1),
}


@pytest.fixture(scope="module")
def whole() -> bytes:
    """What a kernel's file has in it."""
    return cache.seal(cache.file_name(small.three), compiler.object_code(small.three))


def test_a_whole_file_is_not_compiled_again(folder, whole, compilations) -> None:
    folder.mkdir()
    (folder / cache.file_name(small.three)).write_bytes(whole)
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert compilations == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced(damage, folder, whole, compilations) -> None:
    folder.mkdir()
    path = folder / cache.file_name(small.three)
    path.write_bytes(DAMAGES[damage](whole))
    compilations.clear()
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert compilations == ["three"]
    assert cache.unseal(path.name, path.read_bytes()) is not None
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert compilations == ["three"]


def test_a_damaged_way_into_kernels_is_replaced(folder, compilations) -> None:
    fresh(calls.ONCE).address()
    path = folder / cache.file_name(calls.ONCE)
    path.write_bytes(path.read_bytes()[:-1])
    fresh(calls.ONCE).address()
    fresh(calls.ONCE).address()
    assert compilations == ["enter_once"] * 2
    assert cache.unseal(path.name, path.read_bytes()) is not None


def test_code_that_needs_what_is_not_there_is_replaced(folder, compilations, capfd) -> None:
    code = compiler.object_code(small.three).replace(b"coldq_kernel", b"no_such_name")
    file = cache.file_name(small.three)
    folder.mkdir()
    (folder / file).write_bytes(cache.seal(file, code))
    compilations.clear()
    assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    assert compilations == ["three"]


@pytest.mark.parametrize("kind", ["folder", "dangling link", "link to a folder"])
def test_what_is_no_file_is_passed_over(kind, folder, monkeypatch) -> None:
    folder.mkdir()
    place = folder / cache.file_name(small.three)
    if kind == "folder":
        place.mkdir()
        (place / "inside").touch()
    else:
        place.symlink_to(folder if kind == "link to a folder" else folder / "nowhere")
    cache._warn_uncached.cache_clear()
    if kind == "folder":
        with pytest.warns(RuntimeWarning, match="no writable folder"):
            assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
    else:
        assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
        assert place.is_file()


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", script],
        env={**os.environ, "COLDQ_CACHE_DIR": str(folder), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


TWO = """
import numpy as np
from tests.compiled import small
print(small.three()(np.arange(3.0)), small.guarded_quotients()(np.ones(4), np.full(4, 1e300)))
"""


def test_a_full_disk_gives_one_warning(tmp_path) -> None:
    # Every write beyond 1000 bytes fails.
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    done = run(full + TWO, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(0.0, 1.0, 2.0) 1.0\n"
    assert done.stderr.count("no writable folder for its compiled kernels") == 1
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("where", ["below a file", "read-only"])
def test_a_folder_that_cannot_be_written_gives_one_warning(
    where, folder, tmp_path, monkeypatch
) -> None:
    (tmp_path / "file").touch()
    read_only = Path("/proc/self/fdinfo")  # not even root may write there
    place = read_only if where == "read-only" else tmp_path / "file" / "cache"
    monkeypatch.setenv("COLDQ_CACHE_DIR", str(place))
    cache._warn_uncached.cache_clear()
    with pytest.warns(RuntimeWarning, match="no writable folder for its compiled") as caught:
        assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
        assert fresh(small.guarded_quotients)()(np.ones(4), np.full(4, 1e300)) == 1.0
    assert len(caught) == 1


def test_kernels_for_other_processors_share_a_folder(tmp_path, monkeypatch) -> None:
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    for name in plain:  # or the first one is plain as well
        monkeypatch.delenv(name, raising=False)
    for _ in range(2):
        assert run(TWO, tmp_path).stdout == "(0.0, 1.0, 2.0) 1.0\n"
        assert run(TWO, tmp_path, **plain).stdout == "(0.0, 1.0, 2.0) 1.0\n"
        assert len(list(tmp_path.glob("*.kernel"))) == 6  # two, and the way into them


def test_the_key_covers_callees_and_constants_wherever_they_live(monkeypatch) -> None:
    before = small.everything.meaning()
    assert small.everything.meaning() == before
    monkeypatch.setattr(small, "OFFSET", 0.25)  # of a callee's
    other = small.everything.meaning()
    assert other != before
    monkeypatch.setattr(small, "total", small.shifted)
    assert small.everything.meaning() not in (before, other)


def test_the_key_covers_all_that_kernels_are_compiled_with(monkeypatch, tmp_path) -> None:
    copied = shutil.copytree(Path(cache.__file__).parent, tmp_path / "compiled")
    monkeypatch.setattr(cache, "__file__", str(copied / "cache.py"))
    keys = [cache.build.__wrapped__()]
    for file in sorted(copied.glob("*.py")):
        file.write_text(file.read_text("utf-8") + "# changed\n", "utf-8")
        keys.append(cache.build.__wrapped__())
    assert "lanes.py" in [file.name for file in copied.glob("*.py")]
    assert len(set(keys)) == len(keys)


def test_the_key_is_the_same_in_every_process(tmp_path) -> None:
    script = "from tests.compiled import small; print(small.everything.meaning().hex())"
    found = {run(script, tmp_path, PYTHONHASHSEED=str(seed)).stdout for seed in range(2)}
    assert found == {small.everything.meaning().hex() + "\n"}


def test_a_changed_kernel_is_compiled_anew(folder, compilations, monkeypatch) -> None:
    arguments = V, np.eye(2), np.array([1]), 0.0, 0
    assert fresh(small.everything)()(*arguments) == 103.5
    monkeypatch.setattr(small, "OFFSET", 0.25)
    compiler._shared.clear()  # as in a new process
    assert fresh(small.everything)()(*arguments) == 103.25
    assert compilations == ["everything", "everything"]
    compiler._shared.clear()


def test_a_found_kernel_needs_no_compiler(folder) -> None:
    fresh(calls.ONCE).address()
    fresh(small.three)()
    fresh(small.guarded_quotients)()
    done = run(TWO + "import sys\nprint('numba' in sys.modules)", folder)
    assert done.stdout == "(0.0, 1.0, 2.0) 1.0\nFalse\n", done.stderr


def test_what_killed_writers_left_and_nobody_uses_is_removed(folder) -> None:
    folder.mkdir()
    file = cache.file_name(small.three)
    old, new = time.time() - 2 * cache.UNUSED, time.time()
    unused, used = (f"three-{'0' * 32}-{digit * 16}.kernel" for digit in "12")
    for name, when in (
        (f"{file}.abc.tmp", old), (f"{file}.def.tmp", new), (unused, old), (used, new),
        ("of the user's own.txt", old),
    ):  # fmt: skip
        (folder / name).touch()
        os.utime(folder / name, (when, when))
    fresh(small.three)()
    assert {path.name for path in folder.iterdir()} == {
        file, f"{file}.def.tmp", used, "of the user's own.txt",
    }  # fmt: skip


def test_files_are_for_all_who_may_read_the_folder(folder) -> None:
    fresh(small.three)()
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / cache.file_name(small.three)).stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("way", [compiler.object_code, compiler.in_memory])
def test_kernels_are_compiled_whatever_numba_is_told(way, monkeypatch) -> None:
    monkeypatch.setattr(compiler, "_shared", {})
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    way(fresh(small.everything))
    assert config.DISABLE_JIT == 1


def test_a_compiler_that_lacks_what_is_needed_compiles_in_memory(folder, monkeypatch) -> None:
    def lacking(kernel: Kernel) -> bytes:
        raise AttributeError("no such thing any more")

    monkeypatch.setattr(compiler, "object_code", lacking)
    cache._warn_unknown.cache_clear()
    with pytest.warns(RuntimeWarning, match="compiled anew in every process") as caught:
        assert fresh(small.three)()(V) == (0.0, 1.0, 2.0)
        out = np.empty((5, 2))
        fresh(small.scaled_product)()(np.ones((5, 2, 3)), np.ones(3), 2.0, out)
        assert (out == 6.0).all()
    assert len(caught) == 1
    assert not list(folder.glob("*"))


PRIVATE = [
    (typeinfer.ConstraintNetwork, "propagate"),
    (ssa, "_run_block_rewrite"),
    (base.BaseContext, "refresh"),
    (base.BaseContext, "pair_first"),
]


@pytest.mark.parametrize(("place", "name"), PRIVATE, ids=[name for _, name in PRIVATE])
def test_a_compiler_that_lacks_a_private_part_is_left_as_it_was(place, name, monkeypatch) -> None:
    before = {(p, n): getattr(p, n) for p, n in PRIVATE}
    with monkeypatch.context() as lacking:
        lacking.delattr(place, name)
        with pytest.raises(AttributeError, match=name):
            compiler.object_code(fresh(small.three))
    assert {(p, n): getattr(p, n) for p, n in PRIVATE} == before


@pytest.mark.parametrize("left", [False, True], ids=["fresh", "left by a killed process"])
def test_only_who_wants_the_same_kernel_waits_for_it(left, folder) -> None:
    files = [cache.file_name(kernel) for kernel in (small.three, small.guarded_quotients)]
    own, other = (cache._turn_of([folder], file) for file in files)
    assert own is not None and other is not None
    if left:
        own.touch()
    with cache._turn([folder], files[0]):
        with pytest.raises(BlockingIOError):
            locked(own)
        handle = locked(other)
        assert handle is not None
        os.close(handle)
    assert [path.name for path in folder.iterdir()] == [other.name]


def test_processes_at_once_some_killed() -> None:
    assert play(SMALL, random.Random(0), processes=4) == []


def test_the_folders_are_those_that_are_said(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("COLDQ_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache.folders() == [tmp_path / "own"]
    monkeypatch.delenv("COLDQ_CACHE_DIR")
    assert cache.folders() == [tmp_path / "numba" / "coldq"]
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    package = Path(coldq.__file__).parent
    assert cache.folders() == [package / "__pycache__" / "kernels", tmp_path / "user" / "coldq"]
