"""Faults of the world around: signals, forks, threads, no memory, a bad cache folder. Seeded, many cases a process.

`python -m tests.faults` is for long runs; tests/faults/test_faults.py takes some seconds of it.
"""

import os

os.environ.setdefault("JITLAB_SETTLE", "model")  # decided by counts alone: how often a function is traced is then known
