"""Programs of views and writes, each a function of fresh arrays; tests compare a traced run with plain NumPy."""

from __future__ import annotations

import numpy as np


def a(*shape, dtype=float):
    return np.arange(1, 1 + np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def view_sees_write_of_base(x):
    y = x[1:]
    x[2] = 10
    return y


def base_sees_write_of_view(x):
    y = x[1:]
    y[0] = 10
    return x


def view_of_view(x):
    y = x[1:, ::2]
    z = y[0]
    z[:] = -1
    return x, y, z


def flip_is_a_view(x):
    y = x[::-1]
    y[0] = 7
    return x, y


def flip_of_flip(x):
    y = x[::-1][::-1]
    y[1] = 7
    return x, y


def transpose_is_a_view(x):
    y = x.T
    y[0] = 5
    return x, y


def swapaxes_is_a_view(x):
    y = np.swapaxes(x, 0, 1)[1]
    y += 3
    return x


def reshape_is_a_view(x):
    y = x.reshape(-1)
    y[3] = 9
    return x, y


def reshape_of_transpose_is_a_copy(x):
    y = x.T.reshape(-1)
    y[3] = 9
    return x, y


def results_keep_the_order_of_axes(x):
    y = x.T * 2
    z = y.reshape(-1)
    z[0] = 9
    u = (x.T + x.T.copy()).reshape(-1)
    v = np.zeros_like(x.T)
    v.reshape(-1)[1] = 5
    w = x.T.copy()
    w.reshape(-1)[1] = 5
    return y, z, u, v, w


def reshape_of_a_slice(x):
    y = x[1:].reshape(-1, 1)
    y[2, 0] = 9
    return x, y


def ravel_and_flatten(x):
    r, f = x.ravel(), x.flatten()
    r[0], f[1] = 50, 60
    return x, r, f


def newaxis(x):
    y = x[:, None]
    y[1, 0] = 4
    return x, y.shape[1], y


def ellipsis_of_scalar(x):
    y = x[1, ...]
    y[...] = 8
    return x


def augmented_slice(x):
    x[1:] += x[:-1]
    return x


def augmented_overlap_backwards(x):
    x[:-1] -= x[1:]
    return x


def augmented_flip(x):
    x += x[::-1]
    return x


def augmented_transpose(x):
    x[:2, :2] += x[:2, :2].T
    return x


def augmented_element(x):
    x[1] *= 4
    x[-1] -= x[0]
    return x


def augmented_name_is_in_place(x):
    y = x
    y *= 2
    return x


def binary_makes_a_new_array(x):
    y = x
    y = y * 2
    return x, y


def augmented_scalar_is_new(x):
    s = x.sum()
    t = s
    s += 1
    return s, t


def augmented_zero_d_array_is_in_place(x):
    s = np.zeros(())
    t = s
    s += x.sum()
    return s, t


def out_argument(x):
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    np.add(y, 1, y)
    return y


def out_slice(x):
    np.exp(x[:2], out=x[2:4])
    return x


def out_of_method(x):
    y = np.zeros(x.shape[1:])
    r = x.sum(axis=0, out=y)
    r[0] = -1
    return y


def out_with_where(x):
    y = np.full_like(x, -1)
    np.sqrt(x, out=y, where=x > 3)
    return y


def copyto_with_where(x):
    np.copyto(x, 0, where=x > 3)
    return x


def mask_store_scalar(x):
    x[x > 2] = 0
    return x


def mask_store_augmented(x):
    x[x > 2] += 10
    return x


def mask_read(x):
    return x[x > 2]


def integer_array_read(x):
    return x[[0, 2, 1]], x[np.array([1, 1])]


def integer_array_store(x):
    x[[0, 2]] = [10, 20]
    return x


def integer_array_store_through_view(x):
    y = x[::-1]
    y[[0, 1]] += 5
    return x


def fill_method(x):
    x[1:].fill(3)
    return x


def sort_in_place(x):
    y = x[::-1]
    y.sort()
    return x


def put_and_fill_diagonal(x):
    np.put(x, [0, 2], [9, 8])
    np.fill_diagonal(x, -1)
    return x


def diagonal_reads(x):
    d = np.diagonal(x)
    x[0, 0] = 100
    return d


def add_at(x):
    np.add.at(x, [0, 0, 1], 1)
    return x


def swap_rows(x):
    x[0], x[1] = x[1].copy(), x[0].copy()
    return x


def swap_views_aliased(x):
    x[0], x[1] = x[1], x[0]
    return x


def chained_assignment(x):
    x[0] = x[1] = 7
    return x


def unrolled_rows(x):
    total = 0
    for row in x:
        row += 1
        total = total + row.sum()
    return x, total


def zip_and_enumerate(x):
    for i, (u, v) in enumerate(zip(x, x[::-1], strict=True)):
        u += i * v
    return x


def list_of_views(x):
    parts = [x[i:] for i in range(3)]
    parts[0][1] = 99
    parts[2] += 1
    return parts


def dict_of_arrays(x):
    state = {"a": x, "b": x * 2}
    state["b"] -= state["a"]
    state["a"] = state["b"]
    return state


def split_views(x):
    u, v = np.split(x, 2)
    u[0] = v[1]
    return x, u, v


def broadcast_store(x):
    x[:] = x[0]
    return x


def store_leading_ones(x):
    x[1] = np.ones((1, 1, 3))
    return x


def integer_store_truncates(x):
    y = np.zeros(3, int)
    y[:] = x[:3] / 2
    return y


def bool_and_float32(x):
    b = x > 2
    b |= x < 2
    f = x.astype(np.float32)
    f /= 3
    return b, f


def astype_copies(x):
    y = x.astype(float)
    y[0] = -5
    z = x.astype(float, copy=False)
    z[1] = -6
    return x, y, z


def asarray_is_the_same(x):
    y = np.asarray(x)
    y[0] = 3
    return y


def array_copies(x):
    y = np.array(x)
    y[0] = 3
    return x, y


def ones_then_views(x):
    z = np.ones((3, 4))
    c = z[:, 1]
    c *= x[:3]
    z[1:, 1:][0, 0] = -1
    return z, c


def shared_results(x):
    y = x * 2
    return y, y[1:], y


def moveaxis_store(x):
    np.moveaxis(x, 0, -1)[..., 0] = 0
    return x


def squeeze_store(x):
    y = x[:1].squeeze(0)
    y[1:] = -2
    return x


def real_of_real(x):
    x.real[0] = 4
    return x


def accumulate_into_columns(x):
    out = np.zeros((x.shape[0], 2))
    out[:, 0] = x.sum(axis=1)
    out[:, 1] = x.max(axis=1)
    return out


def roll_by_hand(x):
    last = x[-1].copy()
    x[1:] = x[:-1]
    x[0] = last
    return x


def negative_steps(x):
    y = x[-1:0:-2]
    y[...] = np.arange(y.shape[0])
    return x, y


def empty_slices(x):
    y = x[3:1]
    y += 1
    x[5:] = 3
    return x, y


ONE = a(4)
TWO = a(3, 4)
SQUARE = a(4, 4)
CUBE = a(2, 3, 2)

PROGRAMS = [
    *((f, ONE) for f in (
        view_sees_write_of_base, base_sees_write_of_view, flip_is_a_view, flip_of_flip, newaxis, ellipsis_of_scalar,
        augmented_slice, augmented_overlap_backwards, augmented_flip, augmented_element, augmented_name_is_in_place,
        binary_makes_a_new_array, augmented_scalar_is_new, augmented_zero_d_array_is_in_place, out_argument, out_slice,
        out_with_where, copyto_with_where, mask_store_scalar, mask_store_augmented, mask_read, integer_array_read,
        integer_array_store, integer_array_store_through_view, fill_method, sort_in_place, add_at, list_of_views,
        dict_of_arrays, split_views, integer_store_truncates, bool_and_float32, astype_copies, asarray_is_the_same,
        array_copies, ones_then_views, shared_results, real_of_real, roll_by_hand, negative_steps, empty_slices,
        zip_and_enumerate,
    )),
    *((f, TWO) for f in (
        view_of_view, transpose_is_a_view, swapaxes_is_a_view, reshape_is_a_view, reshape_of_transpose_is_a_copy,
        results_keep_the_order_of_axes,
        reshape_of_a_slice, ravel_and_flatten, out_of_method, mask_store_scalar, mask_read, integer_array_read, swap_rows,
        swap_views_aliased, chained_assignment, unrolled_rows, broadcast_store, accumulate_into_columns, roll_by_hand,
        integer_array_store_through_view, squeeze_store, sort_in_place, augmented_flip,
    )),
    *((f, SQUARE) for f in (put_and_fill_diagonal, diagonal_reads, augmented_transpose, mask_store_augmented)),
    (moveaxis_store, CUBE), (store_leading_ones, a(2, 3)),
]  # fmt: skip
