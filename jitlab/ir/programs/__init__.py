"""Programs: the loops over scalars that the kernels of a cluster are, and the machine they are made for.

Parts, in the order of the data: machine_shape, program, traffic, program_lines.
"""
