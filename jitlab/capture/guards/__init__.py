"""What a trace depends on: arguments and names taken apart, compared and collected.

Parts, in the order of the data: signature, tracetypes, leaves, objects, equal_code, gathering, changes.
"""
