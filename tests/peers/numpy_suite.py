"""NumPy's own tests with the body of each under `jl.jit`: whatever NumPy promises there, a compiled function keeps.

    python -m tests.peers.numpy_suite                                    every module: half an hour
    python -m tests.peers.numpy_suite _core/tests/test_indexing.py -k bool     one module, or some tests of it

A test that ends otherwise than it does without jitlab is printed, with the reason in `numpy_accepted.py`, or else with its
error. The tests run in processes of their own; one that dies is started again without the test that it died in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from tests.peers.numpy_accepted import ACCEPTED

NUMPY = Path(np.__file__).parent
ROOT = Path(__file__).parent.parent.parent
MINUTES = 60  # of one process

#: What a function of arrays can be about, in groups that take about as long as each other. Not here: text, dates, records and
#: objects, masked arrays and matrices (classes of their own), files, the interfaces to C and Fortran, streams of random bits.
GROUPS = {
    "arrays": [f"_core/tests/test_{name}.py" for name in (
        "multiarray", "indexing", "shape_base", "item_selection", "mem_overlap", "array_coercion", "indexerrors", "einsum",
    )],
    "numbers": [f"_core/tests/test_{name}.py" for name in (
        "numeric", "half", "scalarmath", "scalar_methods", "longdouble", "getlimits", "conversion_utils", "nep50_promotions",
        "function_base", "casting_floatingpoint_errors", "errstate", "regression",
    )],
    "ufuncs": [f"_core/tests/test_{name}.py" for name in ("ufunc", "umath", "umath_complex")],
    "library": [f"lib/tests/test_{name}.py" for name in (
        "function_base", "arraypad", "stride_tricks", "shape_base", "index_tricks", "nanfunctions", "twodim_base", "type_check",
        "ufunclike", "arraysetops", "histograms", "polynomial", "regression",
    )] + [f"{name}.py" for name in (
        "linalg/tests/test_linalg", "linalg/tests/test_regression", "fft/tests/test_helper", "fft/tests/test_pocketfft",
        "polynomial/tests/test_polynomial", "polynomial/tests/test_chebyshev",
    )],
}  # fmt: skip
MODULES = [module for group in GROUPS.values() for module in group]


@dataclass(frozen=True)
class Ended:
    """How a test ended: passed, failed, skipped, xfailed or died, and for the second and last why."""

    outcome: str
    why: str = ""


def run(arguments: Sequence[str], **environment: str) -> dict[str, Ended]:
    """How each test ended, by its name."""
    died: dict[str, Ended] = {}
    while True:
        ended, last, how = _process([*arguments, *(f"--deselect={name}" for name in died)], environment)
        if last is None:
            return {**ended, **died}
        died[last] = Ended("died", how)


def _process(arguments: Sequence[str], environment: dict[str, str]) -> tuple[dict[str, Ended], str | None, str]:
    """What one process said, the test that it died in, and how: faulthandler wrote where to its stderr."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes"
        outcomes.touch()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=short", "-c", os.devnull, f"--rootdir={NUMPY.parent}",
             "-p", "no:cacheprovider", "-p", "tests.peers.jitted", *arguments],
            cwd=folder, capture_output=True, text=True, timeout=60 * MINUTES, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_STORAGE_DIRECTORY": folder,
                 "JITLAB_OUTCOMES": str(outcomes), **environment},
        )  # fmt: skip
        facts = [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]
    ended = {fact["test"]: Ended(fact["outcome"], fact["why"]) for fact in facts if "test" in fact}
    started = next((fact["started"] for fact in reversed(facts) if "started" in fact), None)
    if started is not None and started not in ended:
        return ended, started, f"the process ended with {done.returncode}, a signal if negative\n{done.stderr[-3000:]}"
    if done.returncode not in (0, 1, 5):  # passed, failed, nothing to run
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
    return ended, None, ""


def differences(modules: Sequence[str], *arguments: str, part: str = "all") -> Iterator[tuple[str, Ended, Ended]]:
    """Each test that ended otherwise under jl.jit, how it ended, and how it ends without. `part`: which tenth of the tests."""
    compiled = run([*(str(NUMPY / module) for module in modules), *arguments], JITLAB_NUMPY_PART=part)
    if not compiled:
        raise RuntimeError(f"no test of {', '.join(modules)} was run")
    other = [name for name, how in compiled.items() if how.outcome != "passed"]
    functions = dict.fromkeys(name.partition("[")[0] for name in other)  # an id like `//` is no argument for pytest
    plain = run([str(NUMPY.parent / name) for name in functions], JITLAB_PLAIN="1") if other else {}
    for name in other:
        if plain[name].outcome != compiled[name].outcome:
            yield name, compiled[name], plain[name]
    print(f"{len(compiled)} tests of {', '.join(modules)}", file=sys.stderr)


def reason_for(name: str) -> str | None:
    """Why a test may end otherwise."""
    return next((reason for reason, tests in ACCEPTED.items() if any(fnmatchcase(name, test) for test in tests)), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES, help="below the folder of NumPy; default: all of them")
    parser.add_argument("-k", default="", help="as of pytest: which tests of them")
    options = parser.parse_args()
    wrong = 0
    for module in options.modules:
        for name, compiled, plain in differences([module], *(["-k", options.k] if options.k else [])):
            reason = reason_for(name)
            wrong += reason is None
            print(f"{name}: {compiled.outcome}, without jl.jit {plain.outcome}" + (f"; {reason}" if reason else ""))
            if reason is None:
                print(compiled.why, end="\n\n", flush=True)
    print(f"{wrong} tests end otherwise and nobody says why")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
