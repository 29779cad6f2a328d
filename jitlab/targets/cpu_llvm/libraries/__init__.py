"""NumPy's compiled functions by C pointers: where they lie, and what machine code that calls them reads.

Parts, in the order of the data: numpy_functions, call_records, step_writer, python_calls.
"""
