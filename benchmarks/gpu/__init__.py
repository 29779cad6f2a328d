"""The GPU beside its peers: `run.py`, and the programs that it times."""
