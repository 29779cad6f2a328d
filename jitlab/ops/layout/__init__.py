"""Operations that make arrays, and that put their elements elsewhere: views, subscripts, arrays put together.

Parts, in the order of the data: creation, views, indexing, masks, moving_subscripts, windows, concatenation, padding,
diagonals.
"""
