"""One core and one thread in every library: called before they are imported."""

from __future__ import annotations

import os
import tempfile

CORE = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def pin() -> None:
    """For the life of this process, with a folder of its own for kept code."""
    if CORE is not None:
        os.sched_setaffinity(0, {CORE})
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
        os.environ.setdefault(f"{name}_NUM_THREADS", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # the first call is measured without what an earlier run left on disk
    os.environ["JITLAB_CACHE_DIR"] = tempfile.mkdtemp(prefix="jitlab-bench-")
