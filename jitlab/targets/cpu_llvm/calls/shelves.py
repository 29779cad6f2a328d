"""Memory for C functions: blocks that are recycled when the last view of a result goes, without Python.

A block has a shelf: one for each size. Before its first byte stand where it was allocated, its shelf, and the next block there.
A capsule stands between an array and its block: NumPy keeps it as the array's base, and its end gives the block back. All of it
holds the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import sys

from jitlab.support.lazy import made_once
from jitlab.targets.cpu_llvm import machine

from .buffers import BEHIND, LARGE_BYTES, LARGE_PAGE, PAGE, pool, size_class

#: Words of a shelf: the first block, the size of each, and where the words of all shelves are: bytes that are free, and most.
_FIRST, _SIZE, _ALL = range(3)

#: Words before a block.
_ALLOCATED, _SHELF, _NEXT = -24, -16, -8

#: The share of the memory for free blocks that these may take.
SHARE = 4


def shelf(nbytes: int) -> int:
    """The address of the shelf of blocks that hold so many bytes."""
    size = size_class(max(nbytes, 1))
    _all[1] = pool.limit_bytes // SHARE
    words = _shelves.get(size)
    if words is None:
        words = _shelves.setdefault(size, (ctypes.c_int64 * 3)(0, size, ctypes.addressof(_all)))
    return ctypes.addressof(words)


def take() -> int:
    """The address of the C function that gives a capsule of a block of a shelf, and writes where the block is; null without
    memory."""
    return _loaded().address("take")


def free_bytes() -> int:
    """Of blocks that nobody uses."""
    return _all[0]


def trim() -> None:
    """Give the free blocks back to the system."""
    if _all[0]:
        emptied = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_loaded().address("trim"))
        for words in list(_shelves.values()):
            emptied(ctypes.addressof(words))


_all = (ctypes.c_int64 * 2)(0, 0)
_shelves: dict[int, ctypes.Array[ctypes.c_int64]] = {}


@made_once
def _loaded() -> machine.Loaded:
    return machine.load(machine.object_cache().compile(_TEXT, "quick")[0], ["take", "trim"])


def _at(name: str, base: str, offset: int, kind: str = "ptr") -> str:
    return f"%{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.at"


#: The system is asked for large pages where there are some: 14 is Linux's word for that. What it answers changes nothing.
_IS_LINUX = sys.platform == "linux"
_ADVISE = "%pages = inttoptr i64 %start to ptr\n  call i32 @madvise(ptr %pages, i64 %size, i32 14)" if _IS_LINUX else ""

_TEXT = f"""
{"declare i32 @madvise(ptr, i64, i32)" if _IS_LINUX else ""}
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare void @PyErr_Clear()

define ptr @take(ptr %shelf, ptr %out) {{
  %first = load ptr, ptr %shelf
  {_at("size", "shelf", 8 * _SIZE, "i64")}
  %is.none = icmp eq ptr %first, null
  br i1 %is.none, label %make, label %known
known:
  {_at("next", "first", _NEXT)}
  store ptr %next, ptr %shelf
  {_at("all", "shelf", 8 * _ALL)}
  %free = load i64, ptr %all
  %left = sub i64 %free, %size
  store i64 %left, ptr %all
  br label %wrap
make:
  %is.large = icmp sge i64 %size, {LARGE_BYTES}
  %page = select i1 %is.large, i64 {LARGE_PAGE}, i64 {PAGE}
  %more.bytes = add i64 %page, {-_ALLOCATED}
  %wanted = add i64 %size, %more.bytes
  %allocated = call ptr @PyMem_RawMalloc(i64 %wanted)
  %is.lost = icmp eq ptr %allocated, null
  br i1 %is.lost, label %none, label %made
made:
  %number = ptrtoint ptr %allocated to i64
  %last = add i64 %page, {-_ALLOCATED - BEHIND - 1}
  %beyond = add i64 %number, %last
  %mask = sub i64 0, %page
  %start = and i64 %beyond, %mask
  %placed = add i64 %start, {BEHIND}
  %new = inttoptr i64 %placed to ptr
  %allocated.at = getelementptr i8, ptr %new, i64 {_ALLOCATED}
  store ptr %allocated, ptr %allocated.at
  %shelf.at = getelementptr i8, ptr %new, i64 {_SHELF}
  store ptr %shelf, ptr %shelf.at
  br i1 %is.large, label %large, label %wrap
large:
  {_ADVISE}
  br label %wrap
wrap:
  %block = phi ptr [ %first, %known ], [ %new, %made ], [ %new, %large ]
  %capsule = call ptr @PyCapsule_New(ptr %block, ptr null, ptr @give)
  %is.bare = icmp eq ptr %capsule, null
  br i1 %is.bare, label %lost, label %given
given:
  store ptr %block, ptr %out
  ret ptr %capsule
lost:
  {_at("whole", "block", _ALLOCATED)}
  call void @PyMem_RawFree(ptr %whole)
  call void @PyErr_Clear()
  ret ptr null
none:
  ret ptr null
}}

define void @give(ptr %capsule) {{
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  {_at("shelf", "block", _SHELF)}
  {_at("size", "shelf", 8 * _SIZE, "i64")}
  {_at("all", "shelf", 8 * _ALL)}
  %free = load i64, ptr %all
  {_at("most", "all", 8, "i64")}
  %more = add i64 %free, %size
  %fits = icmp sle i64 %more, %most
  br i1 %fits, label %keep, label %drop
keep:
  store i64 %more, ptr %all
  %first = load ptr, ptr %shelf
  %next.at = getelementptr i8, ptr %block, i64 {_NEXT}
  store ptr %first, ptr %next.at
  store ptr %block, ptr %shelf
  ret void
drop:
  {_at("whole", "block", _ALLOCATED)}
  call void @PyMem_RawFree(ptr %whole)
  ret void
}}

define void @trim(ptr %shelf) {{
begin:
  {_at("size", "shelf", 8 * _SIZE, "i64")}
  {_at("all", "shelf", 8 * _ALL)}
  br label %each
each:
  %block = load ptr, ptr %shelf
  %is.none = icmp eq ptr %block, null
  br i1 %is.none, label %done, label %one
one:
  {_at("next", "block", _NEXT)}
  store ptr %next, ptr %shelf
  %free = load i64, ptr %all
  %left = sub i64 %free, %size
  store i64 %left, ptr %all
  {_at("whole", "block", _ALLOCATED)}
  call void @PyMem_RawFree(ptr %whole)
  br label %each
done:
  ret void
}}
"""
