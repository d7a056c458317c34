"""Run what is compiled for other processors than the host's: ``make test-cpus``.

The levels of x86-64 stand for generations of machines; those that the host cannot execute are
named and left out. On other architectures there are the host and its plainest relative. The native
core runs at the same level if that was built, else at its plainest.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys

from llvmlite import binding

from coldq import _native

HOST, PLAIN = "host", "generic"
# What a level adds to the one before it, as LLVM names it.
LEVELS = {
    "x86-64-v2": ("cx16", "popcnt", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
TESTS = (
    "tests/compiled", "tests/native", "tests/step", "tests/solver",
    "tests/properties/test_identical_bits.py", "tests/domains", "tests/rules", "README.md",
)  # fmt: skip


def processors() -> list[str]:
    """The processors whose code the host executes."""
    found = [HOST, PLAIN]
    if platform.machine().lower() in ("x86_64", "amd64"):
        has = binding.get_host_cpu_features()
        for level, needed in LEVELS.items():
            if not all(has.get(feature, False) for feature in needed):
                break
            found.append(level)
    return found


def environment(processor: str) -> dict[str, str]:
    """That of a process whose kernels are for the processor."""
    if processor == HOST:
        return dict(os.environ)
    level = processor.removeprefix("x86-64-")
    native = level if level in _native.levels else _native.levels[0]
    # Without the empty features the host's would stay on.
    kernels = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    return {**os.environ, **kernels, "COLDQ_CPU": native}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("processors", nargs="*", help=f"of {HOST}, {PLAIN}, {', '.join(LEVELS)}")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="instead of the compiled part")
    given = parser.parse_args()
    there = processors()
    asked = given.processors or there
    unknown = set(asked) - {HOST, PLAIN, *LEVELS}
    if unknown:
        parser.error(f"there is no processor {', '.join(sorted(unknown))}")
    failed = []
    for processor in asked:
        if processor not in there:
            print(f"{processor}: this machine cannot execute it", flush=True)
            continue
        print(f"{processor}:", flush=True)
        parted = ["-n", "auto", "--dist", "worksteal"]
        command = [sys.executable, "-m", "pytest", *parted, *given.tests]
        if subprocess.run(command, env=environment(processor), check=False).returncode:
            failed.append(processor)
    left_out = [level for level in LEVELS if level not in there]
    if left_out and not given.processors:
        print(f"left out, because this machine cannot execute them: {', '.join(left_out)}")
    print(f"failed for {', '.join(failed)}" if failed else "passed for all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
