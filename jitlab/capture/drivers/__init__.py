"""Who records and runs: cells and function bodies in pieces, calls as a whole, the traces of both.

Parts, in the order of the data: paths, calls, pieces, turns, put_off, piece_traces, helpers, driver, cells, function_body,
passed, trace, leaving, run_events.
"""
