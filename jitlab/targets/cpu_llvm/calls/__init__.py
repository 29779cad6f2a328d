"""Calls of machine code: memory, arguments, launches, and the C function in front of a warm call.

Parts, in the order of the data: buffers, device, blas, host_calls, signals, context, launcher, shelves, code_lines,
argument_code, note_code, entry_code, entry, python_way.
"""
