"""Array programs, a folder each, with what peers need to run them: see `benchmarks/run.py`."""
