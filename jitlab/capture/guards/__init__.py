"""What a trace depends on: arguments and names taken apart, compared and collected.

Parts, in the order of the data: signature, described_calls, tracetypes, leaves, objects, equal_code, gathering,
described_lookups, changes.
"""
