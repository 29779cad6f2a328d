"""One core and one thread in every library, or all of them: called before they are imported."""

from __future__ import annotations

import os
import tempfile

CORE = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def pin(is_parallel: bool = False) -> None:
    """For the life of this process, with a folder of its own for kept code. `is_parallel`: all cores are used."""
    if CORE is not None and not is_parallel:
        os.sched_setaffinity(0, {CORE})
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA") if not is_parallel else ():
        os.environ.setdefault(f"{name}_NUM_THREADS", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # the first call is measured without what an earlier run left on disk
    os.environ["JITLAB_CACHE_DIR"] = tempfile.mkdtemp(prefix="jitlab-bench-")
