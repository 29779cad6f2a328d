"""Names of other frameworks for what jitlab does: an example runs with nothing changed but its import.

Parts, in the order of the data: aliases, mindspore, tensorflow.
"""
