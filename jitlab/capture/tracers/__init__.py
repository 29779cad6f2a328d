"""What stands for a value while a program is recorded: arrays, numbers, sizes, masks.

Parts, in the order of the data: arrays, tensor, array_methods, subscripts, flat, indices, masked, symbolic, number,
tensor_array, filled_lists.
"""
