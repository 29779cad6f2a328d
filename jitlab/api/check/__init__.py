"""Compiled code beside NumPy on the user's own data: where they differ, and which decision did it.

Parts, in the order of the data: load, world, against, replaying, reference, check, bisect, check_text.
"""
